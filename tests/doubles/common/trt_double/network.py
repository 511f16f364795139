"""The network and its ONNX parser: an ONNX file is read with ONNX Runtime, and kept whole."""

from trt_double.board import RULES, board
from trt_double.bound import Bound
from trt_double.plan import Model, UnreadableModelError
from trt_double.values import Dims, Severity, data_type


class ITensor(Bound):
    """What goes in or out of a network."""

    def __init__(self, described, is_input):
        self._name = described["name"]
        self._shape = tuple(described["shape"])
        self._dtype = data_type(described["dtype"])
        self._is_input = is_input

    name = property(lambda self: self._name)

    @property
    def shape(self):
        return Dims(self._shape)

    @shape.setter
    def shape(self, wanted):
        """Fix sizes that the file leaves open; no other may change once it is parsed (NvOnnxParser.h, createParser)."""
        if any(had not in (-1, wanted[side]) for side, had in enumerate(self._shape)):
            raise ValueError("a constant dimension was changed after parsing")
        self._shape = tuple(wanted)


class INetworkDefinition(Bound):
    """A network: empty, or an ONNX file."""

    def __init__(self, flags):
        self._explicit_batch = not RULES.get("explicit_batch_wanted") or bool(flags & 1)
        self._strongly_typed = bool(RULES.get("strongly_typed") or (flags & 2 and RULES.get("may_strongly_type")))
        self._model = None
        self._inputs = []
        self._outputs = []

    def _take(self, model):
        self._model = model
        self._inputs = [ITensor(described, True) for described in model.inputs]
        self._outputs = [ITensor(described, False) for described in model.outputs]

    def _is_quantized(self):
        return b"QuantizeLinear" in self._model.onnx

    def get_input(self, index):
        return self._inputs[index] if 0 <= index < len(self._inputs) else None


class ParserError(Bound):
    """Why the parser refused a file."""

    def __init__(self, text):
        self._text = text

    def desc(self):
        return self._text


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
            return self._refuse(str(error))
        if not self._network._explicit_batch:
            return self._refuse(
                "This version of the ONNX parser only supports TensorRT INetworkDefinitions with an "
                "explicit batch dimension."
            )
        operator = board("unsupported_operator")
        if operator and operator.encode() in found.onnx:
            return self._refuse(f"No importer registered for op: {operator}")
        self._network._take(found)
        return True

    def _refuse(self, text):
        self._errors.append(ParserError(text))
        self._logger.log(Severity.ERROR, text)
        return False
