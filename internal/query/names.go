package query

import (
	"strconv"
	"strings"

	"quern.dev/quern/internal/auth"
	"quern.dev/quern/internal/catalog"
)

// table is a name in the statement that must be a dataset: dataset, namespace.dataset or owner.namespace.dataset. The
// parts are as written. A name without dots can also be a path in double quotes, such as "namespace/dataset".
type table struct {
	owner, namespace, name string

	at        int
	isAliased bool // its columns cannot be named with the name of the dataset
	read      int  // index of its dataset among those that the statement reads, after the names were resolved
}

// key returns the name in the form in which names are compared.
func (t table) key() table {
	return table{owner: folded(t.owner), namespace: folded(t.namespace), name: folded(t.name)}
}

// isBare reports whether the name depends on the namespace of the request.
func (t table) isBare() bool { return t.namespace == "" && !strings.Contains(t.name, "/") }

// path returns the address that the name means in a request for the given namespace.
func (t table) path(in catalog.Path) catalog.Path {
	if t.namespace == "" {
		return in.Named(t.name)
	}

	in.Namespace, in.Dataset = t.namespace, t.name
	if t.owner != "" {
		in.Username = t.owner
	}

	return in
}

// beside returns the name of another dataset in the namespace of this one, written in the same form.
func (t table) beside(dataset string) table {
	if t.namespace == "" {
		dataset = t.name[:strings.LastIndexByte(t.name, '/')+1] + dataset
	}

	t.name = dataset

	return t
}

// String returns the name as the statement writes it.
func (t table) String() string {
	if t.namespace == "" {
		return t.name
	}

	return dotted(t.owner, t.namespace, t.name)
}

// quoted returns the name for a message: a name without dots in quotes, a name with dots as SQL.
func (t table) quoted() string {
	if t.namespace == "" {
		return strconv.Quote(t.name)
	}

	return t.String()
}

// dotted joins the parts of a name that are not empty, each in double quotes if SQL needs them.
func dotted(parts ...string) string {
	var written []string

	for _, part := range parts {
		switch {
		case part == "":
		case isPlain(part):
			written = append(written, part)
		default:
			written = append(written, identifier(part))
		}
	}

	return strings.Join(written, ".")
}

// isPlain reports whether a name needs no quotes in SQL.
func isPlain(name string) bool {
	for i := range len(name) {
		if !isNameByte(name[i]) || (i == 0 && (name[i] == '$' || (name[i] >= '0' && name[i] <= '9'))) {
			return false
		}
	}

	return name != ""
}

// isNameByte reports whether a byte can be part of a name without quotes.
func isNameByte(b byte) bool {
	return b >= 0x80 || b == '_' || b == '$' || (b >= '0' && b <= '9') || (b >= 'a' && b <= 'z') || (b >= 'A' && b <= 'Z')
}

// in returns the namespace in which names without one are looked up.
func (want Statement) in() catalog.Path {
	path := catalog.Path{Username: want.Username, Namespace: want.Namespace}
	if path.Username == "" {
		path.Username = auth.Self
	}

	return path
}

// column is a column reference with several parts, which may begin with the name of a dataset.
type column struct {
	parts []string
	at    int
}

func (w *walker) column(o object) {
	var parts []string

	for _, part := range list(o["column_names"]) {
		name, _ := part.(string)
		parts = append(parts, name)
	}

	if len(parts) > 1 {
		w.columns = append(w.columns, column{parts: parts, at: position(o)})
	}
}
