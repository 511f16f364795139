/* Asks a daemon what a photograph shows, and prints the reply, which any JSON library reads. Needs libzmq and its
 * header (Debian and Ubuntu: libzmq3-dev):
 * cc client.c -lzmq -o client && ./client ipc:///run/jetsel/jetsel.sock cat.jpg
 * With boxes, the reply has an answer for each: ./client ENDPOINT cat.jpg '{"unit": "pixels", "xywh": [[10, 20, 99, 80]]}' */
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

static char request[65536], reply[1000000];

int main(int argc, char **argv)
{
    const char *boxes = argc == 4 ? argv[3] : "null";
    const char *format = "{\"v\": 1, \"type\": \"classify\", \"id\": \"1\", \"top_k\": 3, \"boxes\": %s}";
    int asked = snprintf(request, sizeof request, format, boxes);
    FILE *file = (argc == 3 || argc == 4) && asked < (int)sizeof request ? fopen(argv[2], "rb") : NULL;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return fprintf(stderr, "usage: client ENDPOINT IMAGE [BOXES]\n"), 2;
    size_t size = (size_t)ftell(file);
    char *image = malloc(size + 1);
    rewind(file);
    if (image == NULL || fread(image, 1, size, file) != size)
        return perror(argv[2]), 2;
    void *socket = zmq_socket(zmq_ctx_new(), ZMQ_REQ);
    int wait_ms = 10000;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    if (zmq_connect(socket, argv[1]) != 0 || zmq_send(socket, request, (size_t)asked, ZMQ_SNDMORE) < 0 ||
        zmq_send(socket, image, size, 0) < 0)
        return fprintf(stderr, "%s: %s\n", argv[1], zmq_strerror(zmq_errno())), 1;
    int length = zmq_recv(socket, reply, sizeof reply, 0);
    if (length < 0)
        return fprintf(stderr, "no reply within 10 s\n"), 1;
    return printf("%.*s\n", length, reply) < 0;
}
