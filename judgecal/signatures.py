"""Find a DSPy signature by its file name, read its scale and its roles from the types, and fingerprint it.

A signature file is plain DSPy: one class, nothing of judgecal in it. The file belongs to the user and is
loaded by path, never imported as part of a package.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import traceback
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from judgecal.errors import InputError, error_text, unknown_name
from judgecal.prompts import TextPrompt, read_prompt
from judgecal.records import ITEM_UNIT, PAIR_UNIT, digest
from judgecal.scale import FALSE_WORDS, TRUE_WORDS, Scale
from judgecal.workspace import Workspace, find_workspace

if TYPE_CHECKING:
    import dspy

CHUNK = "chunk"
"""The input field that makes a judge of chunks: it takes one context of an item, a call each."""
ANSWER_A, ANSWER_B = "answer_a", "answer_b"
"""The input fields that make a judge of pairs."""
ITEM_INPUTS = frozenset({
    "item", "question", "answer_under_test", "answer", "response", "reference_answer", "reference_answers",
    "context", "contexts", "conversation", "expect", CHUNK, ANSWER_A,
    ANSWER_B,
})  # fmt: skip
"""The inputs that every item has a place for; any other name is that of a field."""


@dataclass(frozen=True, slots=True)
class LoadedSignature:
    """A signature and what judgecal read from it.

    That of a text prompt asks for the same inputs, has its text as instructions, and gives a reasoning and a
    verdict: it is what an optimiser works on.
    """

    name: str  # the file's name without `.py`, behind the sub-folder that it is in; `prompts/NAME.md`
    cls: type[dspy.Signature]
    text: str
    fingerprint: str  # 64 hex digits over instructions, fields and annotations
    scale: Scale | None  # the verdict's scale; None where the signature has no verdict (an answerer's)
    verdict: str | None  # the verdict's field, or None
    words: tuple[str, str] | None  # on a binary scale written in words, (word for 1, word for 0)
    inputs: tuple[str, ...]  # names of the input fields, in the order of the prompt
    reasoning: str | None  # the first text output, or None
    prompt: TextPrompt | None = None  # the text that is sent instead

    def judge_scale(self) -> Scale:
        """Return the verdict's Scale, for a signature that is used as a judge."""
        if self.scale is None or self.verdict is None:
            outputs = ", ".join(self.cls.output_fields)
            raise InputError(
                f"signature {self.name} cannot judge: among its outputs ({outputs}) none is a verdict; give "
                "one field a number, Literal or bool type"
            )
        return self.scale


def unit_of(inputs: Collection[str]) -> str:
    """Return the unit's name, a str, that a judge with these input names judges: `item`, `chunk`, `pair`."""
    pair = {ANSWER_A, ANSWER_B} <= set(inputs)
    return PAIR_UNIT if pair else CHUNK if CHUNK in inputs else ITEM_UNIT


def list_signatures(workspace: Workspace) -> list[str]:
    """Return the sorted names of the signature files and text prompts in a Workspace, a list. A README.md in
    `prompts/` is none.

    A leading underscore hides a file or a folder.
    """
    names = []
    for folder, root, suffix in (
        (workspace.signatures, workspace.signatures, ".py"),
        (workspace.prompts, workspace.root, ".md"),
    ):
        paths = (path.relative_to(root) for path in folder.rglob(f"*{suffix}") if path.name != "README.md")
        shown = (path for path in paths if not any(part.startswith(("_", ".")) for part in path.parts))
        names += [path.as_posix().removesuffix(".py") for path in shown]
    return sorted(names)


def load_signature(name_or_path: str | Path, *, workspace: Workspace | None = None) -> LoadedSignature:
    """Return the LoadedSignature that a name in the workspace, or a path of a file, stands for.

    >>> found = judgecal.load_signature("correctness_v3")
    >>> str(found.scale), found.verdict, found.inputs
    ('percentage', 'correctness_percentage', ('question', 'reference_answer', 'answer_under_test'))
    """
    text = str(name_or_path)
    if text.endswith(".py"):
        path = Path(text)
        if not path.is_file():
            raise InputError(f"{path}: there is no such signature file")
        return _load_file(path, path.stem)
    workspace = workspace or find_workspace()
    if text not in (names := list_signatures(workspace)):
        raise unknown_name("signature", text, names)
    if not text.endswith(".md"):
        return _load_file(source_file(text, workspace), text)
    prompt = read_prompt(source_file(text, workspace), ITEM_INPUTS)
    made = signature_on(prompt.scale, prompt.inputs, prompt.instructions)
    fingerprint = digest(["text prompt", prompt.text])
    return replace(made, name=text, text=prompt.text, fingerprint=fingerprint, prompt=prompt)


def source_file(name: str, workspace: Workspace) -> Path:
    """The path of a signature or a text prompt by its name, there or not."""
    return workspace.root / name if name.endswith(".md") else workspace.signatures / f"{name}.py"


def signature_on(scale: Scale, inputs: Sequence[str], instructions: str | None = None) -> LoadedSignature:
    """Return a LoadedSignature of no file, from a verdict's Scale and the names of its inputs."""
    import dspy

    bounds = {"ge": scale.low, "le": scale.high}
    words = scale.categories or (("yes", "no") if scale.kind == "binary" else ())
    kind: Any = int if scale.kind == "ordinal" else float
    field = dspy.OutputField() if words else dspy.OutputField(**bounds)
    cls = dspy.make_signature(
        {
            **{each: (str, dspy.InputField()) for each in inputs},
            "reasoning": (str, dspy.OutputField()),
            "verdict": (Literal[words] if words else kind, field),
        },
        instructions,
        "Judged",
    )
    binary = ("yes", "no") if scale.kind == "binary" else None
    print_ = _fingerprint(cls)
    return LoadedSignature("", cls, "", print_, scale, "verdict", binary, tuple(inputs), "reasoning")


def outline_signature(name: str, *, workspace: Workspace) -> tuple[str | None, tuple[str, ...]]:
    """Return (verdict's type, inputs) of a signature or prompt, from its name and a Workspace; run nothing.

    The type is that of the output that is no text, as it is written there, and of a text prompt its scale;
    None where all outputs are texts.
    """
    path = source_file(name, workspace)
    if name.endswith(".md"):
        prompt = read_prompt(path, ITEM_INPUTS)
        return str(prompt.scale), prompt.inputs
    source = read_source(path)
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno}: no Python: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: no Python: {error}") from None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    ours = [node for node in classes if any(ast.unparse(base).endswith("Signature") for base in node.bases)]
    if len(ours) != 1:
        names = ", ".join(node.name for node in ours) or "none"
        raise InputError(f"{path}:1: a signature file holds exactly one dspy.Signature class, found {names}")
    inputs, outputs = list[str](), list[str]()
    for node in ours[0].body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = ast.unparse(node.value.func) if isinstance(node.value, ast.Call) else ""
            if kind.endswith("InputField"):
                inputs.append(node.target.id)
            elif kind.endswith("OutputField"):
                outputs.append(ast.unparse(node.annotation))
    return next((kind for kind in outputs if not kind.startswith(_TEXTS)), None), tuple(inputs)


_TEXTS = ("str", "list", "dict", "tuple")
"""How the types of outputs begin that are no verdict."""


def read_source(path: Path) -> str:
    """Return the text of the code file at a path, a str; InputError where it is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start}): save the file as UTF-8") from None


def loaded_class(
    cls: type[dspy.Signature], name: str, path: Path | str = "this signature", source: str = ""
) -> LoadedSignature:
    """Return the LoadedSignature of a signature class, from the class and a name; no source, no file."""
    verdicts, lines = verdict_fields(cls), field_lines(source)
    if len(verdicts) > 1:
        at = f"{path}:{lines.get(verdicts[1], 1)}"
        raise InputError(
            f"{at}: one verdict field expected, found {len(verdicts)}: {', '.join(verdicts)}; keep one"
        )
    verdict = verdicts[0] if verdicts else None
    scale, words = (None, None)
    if verdict is not None:
        scale, words = scale_of_field(
            cls.output_fields[verdict], f"{path}:{lines.get(verdict, 1)}: {verdict}"
        )
    texts = (name for name, field in cls.output_fields.items() if field.annotation is str)
    return LoadedSignature(
        name=name,
        cls=cls,
        text=source,
        fingerprint=_fingerprint(cls),
        scale=scale,
        verdict=verdict,
        words=words,
        inputs=tuple(cls.input_fields),
        reasoning=next(texts, None),
    )


def run_source(path: Path, source: str) -> ModuleType:
    """Run code, from a file's path and its source text, as a module, registered first: a ModuleType."""
    name = f"judgecal_file_{path.stem}_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None:
        raise InputError(f"{path}: Python cannot load this file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        # The text is compiled here rather than by the loader, which would leave a __pycache__ beside the
        # file; this module's own __future__ import is none of the file's.
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, KeyboardInterrupt):
            raise
        line = error.lineno if isinstance(error, SyntaxError) and error.filename == str(path) else None
        for frame in traceback.extract_tb(error.__traceback__):  # the last line of the file's own
            line = frame.lineno if frame.filename == str(path) else line
        place = path if line is None else f"{path}:{line}"
        raise InputError(f"{place}: running the file raised {error_text(error)}") from error
    return module


def field_lines(source: str) -> dict[str, int]:
    """Return name -> line of each class and field in a signature's source text; empty if no Python."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return {}
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    lines = {node.name: node.lineno for node in classes}
    for field in (field for node in classes for field in node.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            lines[field.target.id] = field.lineno
    return lines


def _load_file(path: Path, name: str) -> LoadedSignature:
    """Return the LoadedSignature of the one signature class in a file, which is run, from path and name."""
    import dspy

    source = read_source(path)
    module = run_source(path, source)
    ours = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, dspy.Signature)
        and value.__module__ == module.__name__
    ]
    if len(ours) != 1:
        names, lines = ", ".join(cls.__name__ for cls in ours) or "none", field_lines(source)
        line = lines.get(ours[1].__name__, 1) if ours else 1
        raise InputError(
            f"{path}:{line}: a signature file holds exactly one dspy.Signature class, found {names}"
        )
    return loaded_class(ours[0], name, path, source)


def verdict_fields(cls: type[dspy.Signature]) -> list[str]:
    """Return the names of a signature class's outputs with a verdict's type: number, `bool` or `Literal`."""
    return [
        name
        for name, field in cls.output_fields.items()
        if field.annotation in (int, float, bool) or get_origin(field.annotation) is Literal
    ]


def scale_of_type(annotation: Any, where: str) -> tuple[Scale, tuple[str, str] | None] | None:
    """Return (Scale, words for 1 and 0) or None, from a type annotation and `where`, a text for errors."""
    if annotation is bool:
        return Scale.parse("binary"), None
    return _literal_scale(get_args(annotation), where) if get_origin(annotation) is Literal else None


def scale_of_field(field: Any, where: str) -> tuple[Scale, tuple[str, str] | None]:
    """Return (Scale, words for 1 and 0 or None), from a verdict's field and `where`, a text for errors."""
    annotation = field.annotation
    scale = scale_of_type(annotation, where)
    if scale is not None:
        return scale
    low = next((float(rule.ge) for rule in field.metadata if hasattr(rule, "ge")), None)
    high = next((float(rule.le) for rule in field.metadata if hasattr(rule, "le")), None)
    if low is None or high is None or low >= high:
        raise InputError(f"{where} needs two bounds, the lower first, as in dspy.OutputField(ge=0, le=100)")
    if (low, high) == (0.0, 100.0):
        return Scale.parse("percentage"), None
    if annotation is float:
        return Scale("points", low, high), None
    return Scale.parse(f"ordinal:{low:g}:{high:g}"), None


def _literal_scale(values: tuple[Any, ...], where: str) -> tuple[Scale, tuple[str, str] | None]:
    if all(isinstance(value, int) and not isinstance(value, bool) for value in values):
        if max(values) - min(values) + 1 != len(set(values)) or len(values) < 2:
            raise InputError(f"{where}: an ordinal Literal lists whole numbers without gaps, found {values}")
        return Scale.parse(f"ordinal:{min(values)}:{max(values)}"), None
    words = [str(value) for value in values]
    if len(words) < 2:
        raise InputError(f"{where}: a verdict needs at least two words, found {words}")
    yes = [word for word in words if word.lower() in TRUE_WORDS]
    no = [word for word in words if word.lower() in FALSE_WORDS]
    if len(words) == 2 and len(yes) == len(no) == 1:
        return Scale.parse("binary"), (yes[0], no[0])
    return Scale("nominal", 0.0, 0.0, categories=tuple(words)), None


def _fingerprint(cls: type[dspy.Signature]) -> str:
    """Instructions, fields and annotations: DSPy's own state leaves the annotations out."""
    rows = []
    for kind, fields in (("input", cls.input_fields), ("output", cls.output_fields)):
        for name, field in fields.items():
            extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
            shown = {key: str(extra[key]) for key in ("desc", "prefix", "constraints") if key in extra}
            # A type of the file's own carries the module's name, and that changes with the file's formatting.
            annotation = repr(field.annotation).replace(f"{cls.__module__}.", "")
            rows.append([kind, name, annotation, shown])
    return digest([cls.instructions, rows])
