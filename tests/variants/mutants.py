"""Wrong answers made from right ones: the source of a right answer, with one slip in it."""

import ast
import inspect
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

OTHER = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Div}
OTHER |= {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
OTHER |= {ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And}
OF_ANOTHER_NAME = {"min": "max", "max": "min", "sum": "mean", "mean": "sum", "maximum": "minimum", "ones": "zeros"}
OF_ANOTHER_NAME |= {"tril": "triu", "triu": "tril", "amax": "amin", "argmax": "argmin", "float64": "float16"}
OF_ANOTHER_NAME |= {"float32": "float16", "std": "var", "log": "log2", "exp": "exp2"}
MODULES = {"np", "math", "torch", "F", "lists", "arrays", "tl"}
KEPT = {"__init__", "super", "range", "len", "zip", "enumerate", "print"}  # a call of these is no wrapper
Slip = tuple[str, Callable[[], None]]


def mutants(answer: Any) -> list[tuple[str, Callable[[], Any]]]:
    """(what the slip is, a function that makes the answer with it), for each slip that can be made in an answer."""
    if isinstance(answer, Mapping):
        return [
            (what, lambda name=name, make=make: answer | {name: make()})
            for name, part in answer.items()
            for what, make in mutants(part)
        ]
    if (tree := parsed(answer)) is None:
        return []
    found = [what for what, _ in slips(tree)]
    return [(f"{answer.__name__}, {what}", partial(mutant, answer, number)) for number, what in enumerate(found)]


def mutant(answer: Any, number: int) -> Any:
    """The answer with one of its slips. Raises SyntaxError where the slip makes no program."""
    tree = parsed(answer)
    slips(tree)[number][1]()
    names = dict(vars(sys.modules[answer.__module__]))
    with warnings.catch_warnings(action="ignore"):
        exec(compile(ast.fix_missing_locations(tree), f"<a mutant of {answer.__name__}>", "exec"), names)
    return names[tree.body[0].name]


def parsed(answer: Any) -> ast.Module | None:
    """The source of a function or class; None for what has none of its own, or takes names from around it."""
    functions = [answer, *vars(answer).values()] if inspect.isclass(answer) else [answer]
    functions = [each for each in functions if inspect.isfunction(each)]
    if not functions or any(set(each.__code__.co_freevars) - {"__class__"} for each in functions):
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(answer)))
    except (OSError, SyntaxError):  # a lambda inside an expression
        return None
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef | ast.ClassDef):
        return None
    tree.body[0].decorator_list = []
    return tree


def slips(tree: ast.AST) -> list[Slip]:
    """All slips that can be made in a tree. None is in a `while` loop, which might not end."""
    found: list[Slip] = []
    for node, put, names in places(tree):
        line = getattr(node, "lineno", "of a comprehension")
        found += [(f"line {line}: {what}", change) for what, change in slips_at(node, put, names)]
    return found


def places(node: ast.AST, names: tuple[str, ...] = ()) -> Iterator[tuple[ast.AST, Callable, tuple[str, ...]]]:
    """(a node, what puts another in its place, the arguments of the function that it stands in), outermost first."""
    if isinstance(node, ast.While):
        return
    if isinstance(node, ast.FunctionDef):
        names = tuple(each.arg for each in node.args.args if each.arg != "self")
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for number, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                if isinstance(value, list):
                    yield child, lambda new, held=value, at=number: held.__setitem__(at, new), names
                else:
                    yield child, lambda new, of=node, name=name: setattr(of, name, new), names
                yield from places(child, names)


def slips_at(node: ast.AST, put: Callable, names: tuple[str, ...]) -> Iterator[Slip]:
    def put_in(what, new):
        return what, lambda: put(new)

    def set_to(what, name, new, of=node):
        return what, lambda: setattr(of, name, new)

    match node:
        case ast.BinOp(left, op, right):
            if type(op) in OTHER:
                yield set_to("another operation", "op", OTHER[type(op)]())
            if isinstance(op, ast.Sub | ast.Div | ast.MatMult | ast.Pow):
                yield "operands swapped", lambda: vars(node).update(left=right, right=left)
            yield put_in("without the second term", left)
            if not isinstance(op, ast.Pow):
                yield put_in("without the first term", right)
        case ast.BoolOp(op):
            yield set_to("another operation", "op", OTHER[type(op)]())
        case ast.Compare(_, [op], _) if type(op) in OTHER:
            yield "another comparison", lambda: node.ops.__setitem__(0, OTHER[type(op)]())
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand):
            yield put_in("without its sign", operand)
        case ast.Constant(bool() as value):
            yield set_to("the other of the two", "value", not value)
        case ast.Constant(int() | float() as value):
            yield set_to("one more", "value", value + 1)
        case ast.Call(function, args, keywords) if not any(isinstance(each, ast.Starred) for each in args):
            name, is_method = (
                getattr(function, "attr", getattr(function, "id", "")),
                isinstance(function, ast.Attribute),
            )
            if name in OF_ANOTHER_NAME:
                yield set_to("another function", "attr" if is_method else "id", OF_ANOTHER_NAME[name], function)
            if name == "range":
                yield "one step less", lambda: args.__setitem__(-1, ast.BinOp(args[-1], ast.Sub(), ast.Constant(1)))
                yield "from 1", lambda: args.__setitem__(slice(0, -1), [ast.Constant(1)])
            if name not in KEPT and is_method and getattr(function.value, "id", "") not in MODULES:
                yield put_in("the call dropped", function.value)
            elif name not in KEPT and args:
                yield put_in("the call dropped", args[0])
            if len(args) >= 2 and name != "range":
                yield "arguments swapped", lambda: args.__setitem__(slice(0, 2), args[1::-1])
            for number in range(len(keywords)):
                yield f"without {keywords[number].arg}", lambda number=number: keywords.pop(number)
        case ast.Attribute(value, name, ast.Load()):
            if name in ("T", "mT"):
                yield put_in("not transposed", value)
            elif name in ("float64", "float32"):
                yield set_to("another type", "attr", OF_ANOTHER_NAME[name])
        case ast.Name(name, ast.Load()) if name in names:
            for other in names:
                if other != name:
                    yield put_in(f"{other} in its place", ast.Name(other, ast.Load()))
        case ast.Slice(lower, upper):
            if upper is not None:
                yield set_to("one less", "upper", ast.BinOp(upper, ast.Sub(), ast.Constant(1)))
            if lower is not None:
                yield set_to("from the start", "lower", None)
        case ast.AugAssign(target, op, value):
            yield put_in("written over", ast.Assign([target], value))
            yield put_in("dropped", ast.Pass())
            if type(op) in OTHER:
                yield set_to("another operation", "op", OTHER[type(op)]())
        case ast.Assign([ast.Subscript()]) | ast.Expr(ast.Call()):
            yield put_in("dropped", ast.Pass())
        case ast.Assign([ast.Name(name)]) if name in names:
            yield put_in("dropped", ast.Pass())
        case ast.IfExp(_, body, other):
            yield put_in("always", body)
            yield put_in("never", other)
        case ast.If():
            yield set_to("always", "test", ast.Constant(True))
            yield set_to("never", "test", ast.Constant(False))
        case ast.comprehension(_, _, [_, *_]):
            yield set_to("all of them", "ifs", [])
        case ast.Return(ast.Tuple([first, second, *_])):
            yield "parts swapped", lambda: node.value.elts.__setitem__(slice(0, 2), [second, first])


# Answers that lose every axis of length 1 ---------------------------------------------------------------------------

REDUCE = {"sum", "max", "mean", "amax", "logsumexp", "min", "std", "var", "argmax", "softmax"}
AXIS = {"axis", "dim", "keepdims", "keepdim"}


def without_axes_of_one(x: Any) -> Any:
    return x.squeeze() if getattr(x, "ndim", 0) else x


def squeezed(answer: Any) -> Iterator[tuple[str, Any]]:
    """(where, the answer with squeeze() without an axis there): after a reduction, or on what is returned."""
    if isinstance(answer, Mapping):
        for name, part in answer.items():
            yield from ((what, answer | {name: made}) for what, made in squeezed(part))
        return
    if (tree := parsed(answer)) is None:
        return
    for number in range(len(to_squeeze(tree))):
        tree = parsed(answer)
        node, put = to_squeeze(tree)[number]
        what = f"{answer.__name__}: {ast.unparse(node)}"
        put(ast.Call(ast.Name("without_axes_of_one", ast.Load()), [node], []))
        names = vars(sys.modules[answer.__module__]) | {"without_axes_of_one": without_axes_of_one}
        exec(compile(ast.fix_missing_locations(tree), f"<{answer.__name__}, squeezed>", "exec"), names)
        yield what, names[tree.body[0].name]


def to_squeeze(tree: ast.AST) -> list[tuple[ast.AST, Callable]]:
    found: list[tuple[ast.AST, Callable]] = []
    for node, put, _ in places(tree):
        match node:
            case ast.Call(function, _, keywords):
                if getattr(function, "attr", "") in REDUCE or AXIS & {each.arg for each in keywords}:
                    found.append((node, put))
            case ast.Return(ast.Tuple(parts)):
                found += [(part, lambda new, at=at, of=parts: of.__setitem__(at, new)) for at, part in enumerate(parts)]
            case ast.Return(ast.expr() as value):
                found.append((value, lambda new, of=node: setattr(of, "value", new)))
    return found
