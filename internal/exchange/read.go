package exchange

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"quern.dev/quern/internal/fault"
)

// Limits of a document, besides its size.
const (
	maxDepth = 20
	maxNodes = 100_000
	maxShown = 64 // characters of a name that a message repeats
)

// Issue is an entry of a document that is not imported, and why.
type Issue struct {
	Entry  string
	Reason string
}

// read reads a document. The issues are keys that the format does not have.
//
// Faults: ValidationFailed if the text is not a document of the format.
func read(text string) (document, []Issue, error) {
	root, err := parse(text)
	if err != nil {
		return document{}, nil, fault.Invalid("document", err.Error())
	}

	r := &reader{}
	found := r.document(root)

	if r.err != nil {
		return document{}, nil, fault.Invalid("document", r.err.Error())
	}

	return found, r.issues, nil
}

// parse parses the text as one YAML value. JSON is YAML too.
func parse(text string) (*yaml.Node, error) {
	switch {
	case len(text) > MaxDocument:
		return nil, fmt.Errorf("has more than %d bytes; import it in parts", MaxDocument)
	case !utf8.ValidString(text):
		return nil, errors.New("is not UTF-8")
	}

	decoder := yaml.NewDecoder(bytes.NewReader([]byte(text)))

	var found, next yaml.Node
	if err := decoder.Decode(&found); err != nil {
		return nil, syntax(err)
	}

	if err := decoder.Decode(&next); !errors.Is(err, io.EOF) {
		return nil, errors.New("has more than one YAML document; give it one")
	}

	count := 0
	if err := check(&found, 0, &count); err != nil {
		return nil, err
	}

	return found.Content[0], nil
}

// syntax returns where the parser failed. The parser can repeat the text, so only its line is kept.
func syntax(err error) error {
	var line int
	if _, scan := fmt.Sscanf(strings.TrimPrefix(err.Error(), "yaml: "), "line %d", &line); scan == nil {
		return fmt.Errorf("is not valid YAML: there is a syntax error near line %d", line)
	}

	return errors.New("is not valid YAML, or is empty")
}

// check refuses what makes a small text large or names types of programs.
func check(n *yaml.Node, depth int, count *int) error {
	*count++

	switch {
	case depth > maxDepth:
		return fmt.Errorf("is nested deeper than %d levels, in line %d", maxDepth, n.Line)
	case *count > maxNodes:
		return fmt.Errorf("has more than %d values; import it in parts", maxNodes)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("has an anchor or an alias in line %d, which are not read; write the value in each place", n.Line)
	case strings.ContainsRune(n.Value, 0):
		return fmt.Errorf("has a character with the code 0 in line %d", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("has a tag in line %d; tags are not read", n.Line)
	}

	for _, inner := range n.Content {
		if err := check(inner, depth+1, count); err != nil {
			return err
		}
	}

	return nil
}

// reader reads nodes and keeps the first error, which ends the reading: the text is not a document of the format.
type reader struct {
	issues []Issue
	err    error
}

func (r *reader) failf(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("line %d: %s", n.Line, fmt.Sprintf(format, args...))
	}
}

// note reports a key that is not read.
func (r *reader) note(entry, reason string) { r.issues = append(r.issues, Issue{entry, reason}) }

type readers map[string]func(n *yaml.Node, entry string)

// object reads the keys of an object. Keys without a reader are reported, except those that are known to mean nothing here.
func (r *reader) object(n *yaml.Node, entry string, keys readers, without ...string) {
	if n.Kind != yaml.MappingNode {
		r.failf(n, "%s must have keys and values", cut(entry))

		return
	}

	seen := map[string]bool{}

	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || seen[key.Value] {
			r.failf(key, "a key is given twice, or is not text")

			return
		}

		seen[key.Value] = true

		switch read := keys[key.Value]; {
		case isNull(value) || slices.Contains(without, key.Value):
		case read == nil:
			r.note(entry, "The key "+cut(key.Value)+" is not part of the format.")
		default:
			read(value, entry)
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func (r *reader) list(n *yaml.Node, entry string, each func(n *yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.failf(n, "%s must be a list", cut(entry))

		return
	}

	for _, one := range n.Content {
		each(one)
	}
}

// texts returns a reader of a list of texts.
func (r *reader) texts(into *[]string) func(*yaml.Node, string) {
	return func(n *yaml.Node, entry string) {
		r.list(n, entry, func(one *yaml.Node) { *into = append(*into, r.scalar(one, entry)) })
	}
}

// text returns a reader of one text.
func (r *reader) text(into *string) func(*yaml.Node, string) {
	return func(n *yaml.Node, entry string) { *into = r.scalar(n, entry) }
}

func (r *reader) scalar(n *yaml.Node, entry string) string {
	if n.Kind != yaml.ScalarNode {
		r.failf(n, "%s must be text", cut(entry))
	}

	return n.Value
}

func cut(text string) string {
	if utf8.RuneCountInString(text) > maxShown {
		return string([]rune(text)[:maxShown-1]) + "…"
	}

	return text
}
