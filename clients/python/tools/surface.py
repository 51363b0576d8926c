"""Prints the public surface: every public name, its members and their signatures. tests/surface.txt holds it."""

import dataclasses
import inspect

import quern


def members(one: type) -> list[str]:
    lines = []
    for name, value in sorted(vars(one).items()):
        if name.startswith("_") and name not in ("__init__", "__getitem__", "__iter__", "__aiter__", "__len__", "__arrow_c_stream__"):
            continue
        if inspect.isfunction(value):
            kind = "async def" if inspect.iscoroutinefunction(value) or inspect.isasyncgenfunction(value) else "def"
            lines.append(f"  {kind} {name}{inspect.signature(value)}")
        elif isinstance(value, property):
            lines.append(f"  {name}: {inspect.signature(value.fget).return_annotation}" if value.fget else f"  {name}")
    return lines


def main() -> None:
    for name in sorted(quern.__all__):
        value = getattr(quern, name)
        if not inspect.isclass(value):
            print(name)
            continue
        bases = ", ".join(base.__name__ for base in value.__bases__)
        print(f"{name} = {value.__name__}" if name != value.__name__ else f"class {name}({bases})")
        if dataclasses.is_dataclass(value):
            print("".join(f"  {field.name}: {field.type}\n" for field in dataclasses.fields(value)), end="")
        elif name != "connect":
            print("".join(line + "\n" for line in members(value)), end="")


if __name__ == "__main__":
    main()
