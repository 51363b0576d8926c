package xlsx

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"quern.dev/quern/internal/engine"
)

const (
	maxSheets = 10_000
	maxStyles = 1 << 20
	maxTexts  = 256 << 20 // bytes of shared texts that are kept in memory
)

// book is an open workbook: the list of its sheets, its styles and its shared texts, but not the content of the sheets.
type book struct {
	*archive

	sheets   []sheet
	date1904 bool
	styles   []format // by the style number in cells
	texts    []string // texts that cells share
}

type sheet struct {
	name, part string
	hidden     bool
}

func openBook(file io.ReaderAt, size int64, bounds engine.Bounds) (*book, error) {
	a, err := openArchive(file, size, bounds)
	if err != nil {
		return nil, err
	}

	b := &book{archive: a}

	part, err := b.main()
	if err != nil {
		return nil, err
	}

	related, err := b.relations(part)
	if err != nil {
		return nil, err
	}

	if err := b.readSheets(part, related); err != nil {
		return nil, err
	}

	for _, r := range related {
		switch r.kind {
		case "styles":
			err = b.readStyles(r.target)
		case "sharedStrings":
			err = b.readTexts(r.target)
		}

		if err != nil {
			return nil, err
		}
	}

	return b, nil
}

// main returns the name of the workbook part, from which all other parts are found.
func (a *archive) main() (string, error) {
	related, err := a.relations("")
	if err != nil {
		return "", err
	}

	part := ""

	for _, r := range related {
		if r.kind == "officeDocument" {
			part = r.target
		}
	}

	switch name := strings.ToLower(part); {
	case strings.HasSuffix(name, ".bin"), a.has("xl/workbook.bin"):
		return "", invalid("The file is a binary workbook (.xlsb). Save it as .xlsx.")
	case a.has("content.xml") && a.has("mimetype"):
		return "", invalid("The file is an OpenDocument file (.ods or similar). Save it as .xlsx or CSV.")
	case strings.HasPrefix(name, "word/"), strings.HasPrefix(name, "ppt/"), strings.HasPrefix(name, "visio/"):
		return "", invalid("The file is an Office document, but neither a workbook nor a Word document. Send .xlsx, .docx, CSV, TSV, JSON, NDJSON or Parquet.")
	case part == "" && !a.has("xl/workbook.xml"):
		return "", invalid("The file is a zip archive that contains no workbook. Unpack it and send .xlsx, CSV, TSV, JSON, NDJSON or Parquet, each also with gzip or zstd.")
	case part == "":
		return "", invalid("The workbook is broken: it has no reference to its sheets.")
	default:
		return part, nil
	}
}

func (b *book) readSheets(part string, related map[string]relation) error {
	err := b.each(part, func(s *scanner, element xml.StartElement) error {
		switch {
		case s.in("workbook") && element.Name.Local == "workbookPr":
			b.date1904 = isTrue(attribute(element, "date1904"))
		case s.in("workbook", "sheets") && element.Name.Local == "sheet":
			if len(b.sheets) >= maxSheets {
				return exceeded("The workbook has more than %d sheets.", maxSheets)
			}

			found := sheet{name: attribute(element, "name"), hidden: strings.Contains(strings.ToLower(attribute(element, "state")), "hidden")}

			// Charts and dialogs are also listed as sheets, but have no cells.
			if r := related[relationID(element)]; r.kind == "worksheet" || r.kind == "" {
				found.part = r.target
				b.sheets = append(b.sheets, found)
			}
		}

		return s.root("workbook")
	})

	if err == nil && len(b.sheets) == 0 {
		err = invalid("The workbook has no sheets.")
	}

	return err
}

// relationID returns the value of the attribute id that has a namespace prefix. Other attributes, such as sheetId, have
// no prefix.
func relationID(element xml.StartElement) string {
	for _, a := range element.Attr {
		if a.Name.Local == "id" && a.Name.Space != "" {
			return a.Value
		}
	}

	return ""
}

func isTrue(text string) bool { return text == "1" || text == "true" }

func (b *book) readStyles(part string) error {
	var (
		codes   = map[int]string{}
		numbers []int
	)

	err := b.each(part, func(s *scanner, element xml.StartElement) error {
		if len(codes) > maxStyles || len(numbers) > maxStyles {
			return exceeded("The workbook has more than %d styles.", maxStyles)
		}

		number, err := strconv.Atoi(attribute(element, "numFmtId"))

		switch {
		case s.in("styleSheet", "numFmts") && element.Name.Local == "numFmt" && err == nil:
			codes[number] = attribute(element, "formatCode")
		case s.in("styleSheet", "cellXfs") && element.Name.Local == "xf":
			numbers = append(numbers, number)
		}

		return s.root("styleSheet")
	})
	if err != nil {
		return err
	}

	for _, number := range numbers {
		code, given := codes[number]
		if !given {
			b.styles = append(b.styles, builtIn(number))
		} else {
			b.styles = append(b.styles, formatOf(code))
		}
	}

	return nil
}

func (b *book) style(number int) format {
	if number < 0 || number >= len(b.styles) {
		return format{}
	}

	return b.styles[number]
}

func (b *book) readTexts(part string) error {
	s, err := b.scan(part)
	if err != nil {
		return err
	}
	defer s.Close()

	size := 0

	for {
		token, err := s.next()
		if errors.Is(err, io.EOF) {
			return nil
		}

		if err != nil {
			return err
		}

		element, begins := token.(xml.StartElement)
		if err := s.root("sst"); err != nil {
			return err
		}

		if !begins || element.Name.Local != "si" || !s.in("sst") {
			continue
		}

		text, err := s.text()
		if err != nil {
			return err
		}

		if size += len(text) + 16; size > maxTexts {
			return exceeded("The texts of the workbook have more than %d bytes in total.", maxTexts)
		}

		b.texts = append(b.texts, text)
	}
}

// text returns the text of the current element: the text of its <t>, or the joined texts of its runs. Phonetic text is
// left out.
func (s *scanner) text() (string, error) {
	var (
		text  strings.Builder
		depth = len(s.within)
	)

	for {
		token, err := s.next()

		switch t := token.(type) {
		case xml.CharData:
			if s.within[len(s.within)-1] == "t" && !slices.Contains(s.within[depth:], "rPh") {
				text.Write(t)
			}
		case xml.EndElement:
			if len(s.within) < depth {
				return unescape(text.String()), nil
			}
		}

		if err != nil {
			return "", err
		}

		if int64(text.Len()) > s.archive.bounds.Record {
			return "", &engine.FileError{Code: engine.LineTooLong, Message: fmt.Sprintf("A cell has more than %d bytes.", s.archive.bounds.Record)}
		}
	}
}

// unescape replaces escapes such as _x000D_ with the characters that they represent. Workbooks escape characters that
// XML does not allow.
func unescape(text string) string {
	const size = len("_x000D_")

	if !strings.Contains(text, "_x") {
		return text
	}

	var plain strings.Builder

	for text != "" {
		at := strings.Index(text, "_x")
		if at < 0 || at+size > len(text) {
			break
		}

		code, err := strconv.ParseUint(text[at+2:at+6], 16, 16)
		if err != nil || text[at+6] != '_' || code == 0 || (code >= 0xd800 && code < 0xe000) {
			plain.WriteString(text[:at+2])
			text = text[at+2:]

			continue
		}

		plain.WriteString(text[:at])
		plain.WriteRune(rune(code))
		text = text[at+size:]
	}

	return plain.String() + text
}

// choose returns the sheet that the option names. Without the option it returns the first visible sheet that is not
// empty.
func (b *book) choose(option string) (sheet, []engine.Doubt, error) {
	if option != "" {
		chosen, err := b.named(option)

		return chosen, nil, err
	}

	var (
		filled []sheet
		hidden = 0
	)

	for _, s := range b.sheets {
		some, err := b.isFilled(s)

		switch {
		case err != nil:
			return sheet{}, nil, err
		case some && s.hidden:
			hidden++
		case some:
			filled = append(filled, s)
		}
	}

	switch {
	case len(filled) == 0 && hidden > 0:
		return sheet{}, nil, b.unchosen(engine.InvalidFile, "Only hidden sheets of the workbook have values. Select one with the option sheet: %s.", b.names())
	case len(filled) == 0:
		return sheet{}, nil, invalid("The workbook is empty: no cell has a value.")
	case len(filled) == 1:
		return filled[0], nil, nil
	}

	return filled[0], []engine.Doubt{{Option: "sheet", Message: fmt.Sprintf("The sheet %q is loaded. The workbook also has %s.", shorten(filled[0].name), list(filled[1:]))}}, nil
}

func (b *book) named(option string) (sheet, error) {
	for _, same := range []func(name string) bool{
		func(name string) bool { return name == option },
		func(name string) bool { return strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(option)) },
	} {
		if i := slices.IndexFunc(b.sheets, func(s sheet) bool { return same(s.name) }); i >= 0 {
			return b.sheets[i], nil
		}
	}

	if n, err := strconv.Atoi(option); err == nil && n >= 1 && n <= len(b.sheets) {
		return b.sheets[n-1], nil
	}

	return sheet{}, b.unchosen(engine.InvalidOptions, "sheet: the workbook has no sheet %q. It has %s.", shorten(option), b.names())
}

// unchosen returns the failure of a workbook whose sheet a person has to choose.
func (b *book) unchosen(code, format string, args ...any) error {
	doubt := engine.Doubt{Option: "sheet", Message: "The sheet has to be chosen."}
	for _, s := range b.sheets {
		doubt.Suggestions = append(doubt.Suggestions, s.name)
	}

	return &engine.FileError{Code: code, Message: fmt.Sprintf(format, args...), Doubt: &doubt}
}

func (b *book) names() string { return list(b.sheets) }

func list(sheets []sheet) string {
	const most = 10

	var names []string
	for _, s := range sheets[:min(len(sheets), most)] {
		names = append(names, strconv.Quote(shorten(s.name)))
	}

	if more := len(sheets) - most; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}

	return strings.Join(names, ", ")
}

var errFilled = errors.New("a cell has a value")

// isFilled reports whether any cell of the sheet has a value or a formula.
func (b *book) isFilled(s sheet) (bool, error) {
	err := b.each(s.part, func(s *scanner, element xml.StartElement) error {
		if name := element.Name.Local; s.in("worksheet", "sheetData", "row", "c") && (name == "v" || name == "f" || name == "is") {
			return errFilled
		}

		return s.root("worksheet")
	})
	if errors.Is(err, errFilled) {
		return true, nil
	}

	return false, err
}
