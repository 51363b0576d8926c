package xlsx

import (
	"archive/zip"
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

const (
	maxParts = 10_000
	maxDepth = 64
	slack    = 1 << 20 // bytes that the decoder may read ahead of a token
)

func invalid(format string, args ...any) error {
	return &engine.FileError{Code: engine.InvalidFile, Message: fmt.Sprintf(format, args...)}
}

func exceeded(format string, args ...any) error {
	return &engine.FileError{Code: engine.LimitExceeded, Message: fmt.Sprintf(format, args...)}
}

// archive contains the parts of a workbook. The total number of bytes unpacked from all parts, including repeated
// reads, is limited to what one file may have.
type archive struct {
	parts    map[string]*zip.File // by name in lower case
	bounds   engine.Bounds
	unpacked int64
}

func openArchive(file io.ReaderAt, size int64, bounds engine.Bounds) (*archive, error) {
	reader, err := zip.NewReader(file, size)
	if err != nil {
		return nil, invalid("The file is a zip archive that is broken or truncated: %v.", err)
	}

	if len(reader.File) > maxParts {
		return nil, exceeded("The workbook has %d parts; %d are allowed.", len(reader.File), maxParts)
	}

	a := &archive{parts: map[string]*zip.File{}, bounds: bounds}

	for _, part := range reader.File {
		name := strings.ToLower(strings.TrimPrefix(strings.ReplaceAll(part.Name, `\`, "/"), "/"))
		if a.parts[name] != nil {
			return nil, invalid("The archive has the part %q twice.", shorten(part.Name))
		}

		a.parts[name] = part
	}

	return a, nil
}

func (a *archive) has(name string) bool { return a.parts[strings.ToLower(name)] != nil }

// scanner iterates over the elements of a part.
type scanner struct {
	part    string
	archive *archive
	decoder *xml.Decoder
	packed  io.ReadCloser
	ahead   int64 // bytes read since the last token
	within  []string
}

func (a *archive) scan(name string) (*scanner, error) {
	part := a.parts[strings.ToLower(name)]

	switch {
	case part == nil:
		return nil, invalid("The workbook is broken: it has no part %q.", shorten(name))
	case part.Flags&1 != 0:
		return nil, invalid("The workbook is encrypted. Save it without a password.")
	case part.UncompressedSize64 > uint64(max(a.bounds.Unpacked, 0)): // archive/zip never unpacks more than this size
		return nil, a.tooLarge()
	}

	packed, err := part.Open()
	if err != nil {
		return nil, invalid("The part %q of the workbook cannot be unpacked: %v.", shorten(name), err)
	}

	s := &scanner{part: name, archive: a, packed: packed}
	s.decoder = xml.NewDecoder(bufio.NewReaderSize(s, 64<<10))

	return s, nil
}

func (a *archive) tooLarge() error {
	return exceeded("The file has more than %d bytes when it is unpacked.", a.bounds.Unpacked)
}

func (s *scanner) Close() error { return s.packed.Close() }

func (s *scanner) Read(p []byte) (int, error) {
	n, err := s.packed.Read(p)
	s.ahead += int64(n)
	s.archive.unpacked += int64(n)

	switch {
	case s.archive.unpacked > s.archive.bounds.Unpacked:
		return n, s.archive.tooLarge()
	case s.ahead > s.archive.bounds.Record+slack:
		return n, &engine.FileError{Code: engine.LineTooLong, Message: fmt.Sprintf("A cell has more than %d bytes.", s.archive.bounds.Record)}
	}

	return n, err
}

// next returns the next start or end of an element, or text. It returns io.EOF after the last token.
func (s *scanner) next() (xml.Token, error) {
	token, err := s.decoder.RawToken()
	s.ahead = 0

	if err != nil {
		return nil, s.explain(err)
	}

	switch t := token.(type) {
	case xml.StartElement:
		if s.within = append(s.within, t.Name.Local); len(s.within) > maxDepth {
			return nil, s.broken("its elements are nested too deeply")
		}
	case xml.EndElement:
		last := len(s.within) - 1
		if last < 0 || s.within[last] != t.Name.Local {
			return nil, s.broken(fmt.Sprintf("</%s> closes no element", shorten(t.Name.Local)))
		}

		s.within = s.within[:last]
	case xml.Directive: // entities are never expanded, and spreadsheet programs do not write directives
		return nil, s.broken("it has a document type")
	}

	return token, nil
}

func (s *scanner) explain(err error) error {
	if _, ok := errors.AsType[*engine.FileError](err); ok {
		return err
	}

	switch {
	case errors.Is(err, io.EOF) && len(s.within) == 0:
		return io.EOF
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return s.broken("it ends too early")
	default:
		return s.broken(err.Error())
	}
}

func (s *scanner) broken(why string) error {
	return invalid("The part %q of the workbook is broken: %s.", shorten(s.part), shorten(why))
}

// each calls start for every start of an element. The scanner contains the names of the enclosing elements.
func (a *archive) each(name string, start func(s *scanner, element xml.StartElement) error) error {
	s, err := a.scan(name)
	if err != nil {
		return err
	}
	defer s.Close()

	for {
		token, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		if element, ok := token.(xml.StartElement); ok {
			if err := start(s, element); err != nil {
				return err
			}
		}
	}
}

// in reports whether the current element is directly inside the elements with these names, starting at the root.
func (s *scanner) in(names ...string) bool {
	return len(s.within) == len(names)+1 && slices.Equal(s.within[:len(names)], names)
}

// root fails if the root element of the part does not have the name want.
func (s *scanner) root(want string) error {
	if len(s.within) == 1 && s.within[0] != want {
		return s.broken(fmt.Sprintf("its root element is %q instead of %q", shorten(s.within[0]), want))
	}

	return nil
}

func attribute(element xml.StartElement, name string) string {
	for _, a := range element.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}

	return ""
}

// relation is a reference from one part to another.
type relation struct{ kind, target string }

const maxRelations = 100_000

// relations returns the relations of a part by id. A part without relations has no file for them.
func (a *archive) relations(of string) (map[string]relation, error) {
	folder, base := path.Split(of)
	name := folder + "_rels/" + base + ".rels"
	found := map[string]relation{}

	if !a.has(name) {
		return found, nil
	}

	err := a.each(name, func(s *scanner, element xml.StartElement) error {
		if len(found) > maxRelations {
			return s.broken("it has too many relationships")
		}

		target := attribute(element, "Target")
		if element.Name.Local != "Relationship" || attribute(element, "TargetMode") == "External" {
			return s.root("Relationships")
		}

		if !strings.HasPrefix(target, "/") {
			target = folder + target
		}

		found[attribute(element, "Id")] = relation{
			kind: path.Base(attribute(element, "Type")), target: strings.TrimPrefix(path.Clean("/"+target), "/"),
		}

		return nil
	})

	return found, err
}

const shown = 100

// shorten cuts a text for use in a message.
func shorten(text string) string {
	if runes := []rune(text[:min(len(text), 4*shown)]); len(runes) > shown {
		return string(runes[:shown]) + "…"
	}

	return strings.ToValidUTF8(text, "")
}
