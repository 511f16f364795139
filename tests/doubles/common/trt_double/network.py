"""The network and its ONNX parser: an ONNX file is read with ONNX Runtime, and kept whole."""

from trt_double.board import RULES, board
from trt_double.bound import Bound
from trt_double.plan import Model, UnreadableModelError
from trt_double.values import Dims, Severity, data_type

QUANTIZERS = ("QuantizeLinear", "DequantizeLinear")


class ITensor(Bound):
    """What goes in or out of a network. shape and dtype can be set before a build, as of a weakly typed network."""

    def __init__(self, described, is_input):
        self._name = described["name"]
        self._shape = tuple(described["shape"])
        self._dtype = data_type(described["dtype"])
        self._is_input = is_input

    @property
    def name(self):
        return self._name

    @name.setter
    def name(self, name):
        self._name = name

    @property
    def shape(self):
        return Dims(self._shape)

    @shape.setter
    def shape(self, shape):
        self._shape = tuple(shape)

    @property
    def dtype(self):
        return self._dtype

    @dtype.setter
    def dtype(self, dtype):
        self._dtype = dtype


class INetworkDefinition(Bound):
    """A network: empty, or an ONNX file."""

    def __init__(self, flags):
        self._explicit_batch = not RULES.get("explicit_batch_wanted") or bool(flags & 1)
        self._strongly_typed = bool(RULES.get("strongly_typed") or (flags & 2 and RULES.get("may_strongly_type")))
        self._model = None
        self._inputs = []
        self._outputs = []
        self._title = "Unnamed Network 0"
        self._flags = flags

    def _take(self, model):
        self._model = model
        self._inputs = [ITensor(described, True) for described in model.inputs]
        self._outputs = [ITensor(described, False) for described in model.outputs]

    def _is_dynamic(self):
        return any(-1 in tensor._shape for tensor in self._inputs)

    def _is_quantized(self):
        return any(operator in QUANTIZERS for operator in self._model.operators)

    @property
    def name(self):
        return self._title

    @name.setter
    def name(self, name):
        self._title = name

    @property
    def flags(self):
        return self._flags

    def get_input(self, index):
        return self._inputs[index] if 0 <= index < len(self._inputs) else None


class ParserError(Bound):
    """Why the parser refused a file."""

    def __init__(self, text, node):
        self._text = text
        self._node = node

    def code(self):
        return 8  # UNSUPPORTED_NODE: the doubles' users read desc()

    def desc(self):
        return self._text

    def node(self):
        return self._node

    def file(self):
        return "ModelImporter.cpp"

    def line(self):
        return 0

    def func(self):
        return "parseGraph"

    def __repr__(self):
        return f"In node {self._node} ({self.func()}): UNSUPPORTED_NODE: {self._text}"


class OnnxParser(Bound):
    """Reads an ONNX file into a network."""

    def __init__(self, network, logger):
        self._network = network
        self._logger = logger
        self._errors = []

    @property
    def num_errors(self):
        return len(self._errors)

    def get_error(self, index):
        return self._errors[index]

    def parse(self, model, path=None):
        """Read the bytes of an ONNX file; return whether all of it is supported."""
        try:
            found = Model(bytes(model))
        except UnreadableModelError as error:
            return self._refuse(str(error), -1)
        if not self._network._explicit_batch:
            return self._refuse(
                "This version of the ONNX parser only supports TensorRT INetworkDefinitions with an "
                "explicit batch dimension.",
                -1,
            )
        refused = board("unsupported_operators") or ()
        for index, operator in enumerate(found.operators):
            if operator in refused:
                return self._refuse(f"No importer registered for op: {operator}", index)
        kinds = [described["dtype"] for described in found.inputs + found.outputs]
        if any(data_type(kind) is None for kind in kinds):
            return self._refuse(f"Unsupported data type: {kinds}", -1)
        self._network._take(found)
        return True

    def _refuse(self, text, node):
        self._errors.append(ParserError(text, node))
        self._logger.log(Severity.ERROR, text)
        return False
