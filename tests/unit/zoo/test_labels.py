"""Labels are read in the order of the outputs, or refused by line; the files that people have become one such file."""

from pathlib import Path

import pytest

from jetsel.base.errors import ManifestError
from jetsel.zoo.labels import Labels, labels_from_names, labels_from_text, read_labels_text
from tests.unit.zoo.making import LABELS


def read(tmp_path: Path, text: str) -> Labels:
    path = tmp_path / "labels.tsv"
    path.write_bytes(text.encode("utf-8"))
    return Labels.read(path)


def test_two_classes_may_share_a_name_but_no_identifier(tmp_path: Path) -> None:
    assert read(tmp_path, "n02012849\tcrane\nn03126707\tcrane\n").names == ("crane", "crane")
    with pytest.raises(ManifestError, match=r"line 3: a is on line 1 already"):
        read(tmp_path, "a\tone\nb\ttwo\na\tthree\n")


def test_a_wrong_line_is_refused_by_number(tmp_path: Path) -> None:
    for text, line in (("a\tone\n\nb\ttwo\n", 2), ("a one\n", 1), ("a\tone\tmore\n", 1), ("a\t , one\n", 1)):
        with pytest.raises(ManifestError, match=rf"labels\.tsv, line {line}: .* is not an identifier"):
            read(tmp_path, text)


def test_no_labels_no_file_and_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="no labels"):
        read(tmp_path, "")
    with pytest.raises(ManifestError, match=r"none\.tsv: cannot be read"):
        Labels.read(tmp_path / "none.tsv")
    (tmp_path / "labels.tsv").write_bytes(b"a\t\xe9t\xe9\n")
    with pytest.raises(ManifestError, match="not UTF-8 at byte 2"):
        Labels.read(tmp_path / "labels.tsv")


def labels(tmp_path: Path, content: str | bytes) -> Labels:
    path = tmp_path / "classes.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return labels_from_text(read_labels_text(path), str(path))


def test_one_name_a_line_or_a_list_in_json(tmp_path: Path) -> None:
    found = labels(tmp_path, "tabby, tabby cat\r\n espresso\n\n")
    assert found.wnids == found.names == ("tabby", "espresso")
    assert found.synonyms == ("tabby, tabby cat", "espresso")
    assert labels(tmp_path, '\n["tabby", "espresso"]').names == ("tabby", "espresso")


def test_a_labels_file_keeps_its_bytes_and_so_its_family(tmp_path: Path) -> None:
    assert labels(tmp_path, LABELS).sha256 == Labels.parse(LABELS.encode(), tmp_path).sha256
    assert labels(tmp_path, "\ufeff" + LABELS).wnids == ("n02123045", "n07920052")  # as Windows saves UTF-8


CATS = ("cat", "dog", "red fox")
LISTS = {
    "numbers in front": ["0,{}\n1,{}\n2,{}\n", "0 {}\n1 {}\n2 {}", "0  {}\n1  {}\n2  {}\n", "0: {}\n1: {}\n2: {}\n"],
    "from 1": ["1. {}\n2. {}\n3. {}\n", "1) {}\n2) {}\n3) {}\n", "1\t{}\n2\t{}\n3\t{}\n", "1 - {}\n2 - {}\n3 - {}\n"],
    "numbers behind": ["{},0\n{},1\n{},2\n", "{} 0\n{} 1\n{} 2\n", "{}\t0\n{}\t1\n{}\t2\n"],
    "in quotes": [
        "'{}',\n'{}',\n'{}'\n",
        '"{}"\n"{}"\n"{}"\n',
        "0: '{}',\n1: '{}',\n2: '{}',\n",
        '0,"{}"\n1,"{}"\n2,"{}"\n',
        '"{}","0"\n"{}","1"\n"{}","2"\n',
        '"0"; "{}"\n"1"; "{}"\n"2"; "{}"\n',
        '"0",{}\n"1",{}\n"2",{}\n',
        '{}\n"{}"\n{}\n',
    ],
    "numbers with words or signs": [
        "(0) {}\n(1) {}\n(2) {}\n",
        "class 0: {}\nclass 1: {}\nclass 2: {}\n",
        "0 -> {}\n1 -> {}\n2 -> {}\n",
        '"{}": 0,\n"{}": 1,\n"{}": 2,\n',
    ],
    "in YAML": ["- {}\n- {}\n- {}\n", "names:\n  - {}\n  - '{}'\n  - {}\n", "names:\n  0: {}\n  1: {}\n  2: {}\n"],
    "in YAML of a data set": [
        "path: ../pets\nnc: 3\nnames:\n  0: {}\n  1: {}\n  2: {}\ntest: test\n",
        "nc: 3\r\nnames:\r\n- {}\r\n- {}\r\n- '{}'\r\n",
        "nc: 3\nnames: ['{}', '{}',\n  '{}']\n",
        "names: [{}, {}, {}]\nnc: 3\n",
        "train: images\nnames: {{0: '{}', 1: '{}', 2: '{}'}}\n",
    ],
    "below a header": [
        "id,name\n0,{}\n1,{}\n2,{}\n",
        "label\n{}\n{}\n{}\n",
        '"class_name";"class_id"\n"{}";"0"\n"{}";"1"\n"{}";"2"\n',
    ],
    "objects": [
        '{{"label2id": {{"{}": 0, "{}": 1, "{}": 2}}}}',
        '{{"labels": ["{}", "{}", "{}"]}}',
        '[{{"id": 0, "name": "{}"}}, {{"id": 1, "name": "{}"}}, {{"id": 2, "name": "{}"}}]',
    ],
    "a list": [
        '["{}",\n "{}",\n "{}"]\n',
        "names: ['{}', '{}', '{}',]",
    ],
    "by number": ['{{"0": "{}", "1": "{}",\n "2": "{}"}}', "{{0: '{}',\n 1: '{}',\n 2: '{}'}}"],
    "by name": ['{{"{}": 0, "{}": 1, "{}": 2}}'],
    "a configuration": [
        '{{"model_type": "vit", "id2label": {{"0": "{}", "1": "{}", "2": "{}"}}, "label2id": {{"x": 0}}}}'
    ],
    "as Windows saves it": ["\ufeff{}\r\n{}\r\n{}\r\n\r\n  \r\n"],
}


def test_numbers_that_count_the_classes_are_no_names(tmp_path: Path) -> None:
    for kind, forms in LISTS.items():
        for form in forms:
            assert labels(tmp_path, form.format(*CATS)).names == CATS, (kind, form)


def test_numbers_in_another_order_order_the_classes(tmp_path: Path) -> None:
    for content in (
        "2 red fox\n0 cat\n1 dog\n",
        "2,red fox\n1,dog\n0,cat\n",
        '{"dog": 1, "cat": 0, "red fox": 2}',
        '{"2": "red fox", "1": "dog", "0": "cat"}',
    ):
        assert labels(tmp_path, content).names == CATS, content


def test_identifiers_of_wordnet_are_identifiers(tmp_path: Path) -> None:
    for content in (
        "n02123045 tabby, tabby cat\nn07920052 espresso\n",
        "n02123045,tabby, tabby cat\nn07920052,espresso\n",
        "0 n02123045 tabby, tabby cat\n1 n07920052 espresso\n",
        '{"0": ["n02123045", "tabby", "tabby cat"], "1": ["n07920052", "espresso"]}',
    ):
        assert labels(tmp_path, content).sha256 == Labels.parse(LABELS.encode(), tmp_path).sha256, content


def test_numbers_that_are_names_or_parts_of_names_stay(tmp_path: Path) -> None:
    for names in (
        [str(digit) for digit in range(10)],
        ["gate 1", "gate 2", "gate 3"],
        ["1 euro", "2 euro"],
        ["10 cent", "20 cent", "1 euro"],
        ["1.5 mm", "2.5 mm"],
        ["0,5 mm", "1,0 mm"],
        ["Boeing 737", "Airbus 320"],
        ["7 up", "cola"],
        ["(0) cat", "(2) dog"],
        ["class 1", "class 2"],
        ["class 3: rock", "class 7: acid"],
        ["rock 'n' roll", "cat's", 'the "big" one'],
    ):
        assert list(labels(tmp_path, "\n".join(names)).names) == names
    assert labels(tmp_path, '"1 euro"\n"2 dollars"\n').names == ("1 euro", "2 dollars"), (
        "in quotes nothing is taken off"
    )
    assert labels(tmp_path, '"dogs\'"\n"5"" pipe"\n"label"\n').names == ("dogs'", '5" pipe', "label")
    assert labels(tmp_path, '"a"\t"a"\n"b"\t"b"\n').names == ('"a"', '"b"'), "a labels file of folders called so"
    assert labels(tmp_path, "0\tcat\n1\tdog\n").wnids == ("0", "1"), "a labels file, whose identifiers are numbers"


@pytest.mark.parametrize(
    "content",
    [
        "0,cat\n2,dog\n",  # one is missing
        "0  person\n1  bicycle\n3  car\n",
        "0: cat\n0: dog\n1: fox\n",
        "1 person\n2 persons\n3 persons\n",  # a count of persons, or of lines
        "2 doors\n1 window\n",
        '{"cat": 0, "dog": 0}',
        '{"1": "cat", "3": "dog"}',
    ],
)
def test_numbers_that_may_or_may_not_count_are_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(ManifestError, match=r"numbers do not count the classes .*in quotes"):
        labels(tmp_path, content)


def test_classes_of_one_name_are_told_apart_by_their_number(tmp_path: Path) -> None:
    for content in ("crane\ntabby\ncrane\n", '["crane", "tabby", "crane"]', "0,crane\n1,tabby\n2,crane\n"):
        notices: list[str] = []
        found = labels_from_text(content, "classes.txt", notices.append)
        assert found.wnids == ("crane (0)", "tabby", "crane (2)")
        assert found.names == ("crane", "tabby", "crane")
        assert "several classes are called crane" in notices[0]


def test_a_header_is_left_out_with_a_notice() -> None:
    notices: list[str] = []
    labels_from_text("id,name\n0,cat\n1,dog\n", "classes.txt", notices.append)
    assert "id,name, is left out" in notices[0]


def test_commas_part_synonyms_and_stay_in_names_that_they_would_make_equal(tmp_path: Path) -> None:
    assert labels(tmp_path, "tench, Tinca tinca\ngoldfish\n").names == ("tench", "goldfish")
    assert labels(tmp_path, "red, small\nred, large\nblue\n").names == ("red, small", "red, large", "blue")


def test_the_name_of_a_folder_is_one_name(tmp_path: Path) -> None:
    names = ("red, small", "red, large", ", or none", "blue")
    found = labels_from_names(names, "images")
    assert found.names == found.wnids == found.synonyms == names
    twice = labels_from_names(["a, b", "a, b"], "images")
    assert twice.names == ("a, b (0)", "a, b (1)")


def test_one_name_in_two_forms_of_unicode_is_refused(tmp_path: Path) -> None:
    composed, decomposed = "Schr\u00f6der", "Schro\u0308der"
    with pytest.raises(ManifestError, match=r"u0308der.*xf6der.* are one name"):
        labels_from_names([composed, decomposed], "images")
    with pytest.raises(ManifestError, match="is on line 1 already"):
        read(tmp_path, f"{composed}\ta\n{decomposed}\tb\n")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("tabby\n\nespresso\n", "class 2: '' is not a name"),
        ("", "no classes"),
        ('["tabby", 3]', "expected a JSON list of names"),
        (b"\xff\xfec\0a\0t\0", "in UTF-16"),
        ("cat\n", "only one class, cat"),
        ('"0" "cat"\n"1" "dog"\n', "quotation mark at one end"),
        ('{"0": "cat", "0": "dog"}', "twice"),
        ('[{"id": 0, "name": "cat"}, {"id": 0, "name": "dog"}]', "twice"),
    ],
)
def test_what_is_no_list_of_classes_is_refused(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(ManifestError, match=said) as raised:
        labels(tmp_path, content)
    assert "classes.txt" in str(raised.value)
