"""The few facts of an ONNX file that ONNX Runtime does not tell: which operators it has."""

# Field numbers of onnx.proto: ModelProto.graph 7, GraphProto.node 1, NodeProto.op_type 4.
GRAPH, NODE, OPERATOR = 7, 1, 4


def operators(onnx):
    """Return the operators of the file's nodes, in their order."""
    (graph,) = fields(onnx, GRAPH)
    return [bytes(fields(node, OPERATOR)[0]).decode() for node in fields(graph, NODE)]


def fields(message, wanted):
    """Return what the length-delimited fields of this number hold."""
    message, at, found = memoryview(message), 0, []
    while at < len(message):
        key, at = _varint(message, at)
        number, wire_type = key >> 3, key & 7
        if wire_type == 2:
            size_bytes, at = _varint(message, at)
            if number == wanted:
                found.append(message[at : at + size_bytes])
            at += size_bytes
        elif wire_type == 0:
            _, at = _varint(message, at)
        else:
            at += {1: 8, 5: 4}[wire_type]
    return found


def _varint(message, at):
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
