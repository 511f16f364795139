/* Asks a daemon what a photograph shows, and prints the reply, which any JSON library reads. Needs libzmq and its
 * header (Debian and Ubuntu: libzmq3-dev):
 * cc client.c -lzmq -o client && ./client ipc:///run/jetsel/jetsel.sock cat.jpg */
#include <stdio.h>
#include <stdlib.h>
#include <zmq.h>

int main(int argc, char **argv)
{
    const char request[] = "{\"v\": 1, \"type\": \"classify\", \"id\": \"1\", \"top_k\": 3}";
    FILE *file = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        return fprintf(stderr, "usage: client ENDPOINT IMAGE\n"), 2;
    size_t size = (size_t)ftell(file);
    char *image = malloc(size + 1), reply[65536];
    rewind(file);
    if (image == NULL || fread(image, 1, size, file) != size)
        return perror(argv[2]), 2;
    void *socket = zmq_socket(zmq_ctx_new(), ZMQ_REQ);
    int wait_ms = 10000;
    zmq_setsockopt(socket, ZMQ_RCVTIMEO, &wait_ms, sizeof wait_ms);
    if (zmq_connect(socket, argv[1]) != 0 || zmq_send(socket, request, sizeof request - 1, ZMQ_SNDMORE) < 0 ||
        zmq_send(socket, image, size, 0) < 0)
        return fprintf(stderr, "%s: %s\n", argv[1], zmq_strerror(zmq_errno())), 1;
    int length = zmq_recv(socket, reply, sizeof reply, 0);
    if (length < 0)
        return fprintf(stderr, "no reply within 10 s\n"), 1;
    return printf("%.*s\n", length, reply) < 0;
}
