package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"
)

// column is a column of a table or of CSV output.
type column[T any] struct {
	head string
	of   func(T) any
}

// list prints the items, at most limit of them; 0 means all. JSON and NDJSON contain the objects of the service. If
// there are no items, a table is replaced by the text none.
func list[T any](p *program, items iter.Seq2[T, error], limit int, none string, columns ...column[T]) error {
	var (
		taken []T
		more  bool
	)

	for item, err := range items {
		if err != nil {
			return err
		}

		if more = limit > 0 && len(taken) == limit; more {
			break
		}

		taken = append(taken, item)
	}

	switch p.format {
	case "json":
		if taken == nil {
			taken = []T{}
		}

		return p.json(taken)
	case "ndjson":
		return ndjson(p, slices.Values(taken))
	}

	heads, rows := cells(taken, columns)

	switch {
	case p.format == "csv":
		return p.csv(heads, rows)
	case len(rows) == 0:
		p.out.printf("%s\n", none)
	default:
		p.table(heads, shortened(rows))
	}

	if more {
		p.err.printf("%s\n", p.err.style(dim, fmt.Sprintf("Showing only the first %d. Use --limit for more, or --limit 0 for all.", limit)))
	}

	return nil
}

func cells[T any](items []T, columns []column[T]) (heads []string, rows [][]any) {
	for _, column := range columns {
		heads = append(heads, column.head)
	}

	for _, item := range items {
		row := make([]any, len(columns))
		for i, column := range columns {
			row[i] = column.of(item)
		}

		rows = append(rows, row)
	}

	return heads, rows
}

// one prints a single object: as text for people, or as the object itself for programs.
func one[T any](p *program, item T, words func(), columns ...column[T]) error {
	switch p.format {
	case "json":
		return p.json(item)
	case "ndjson":
		return ndjson(p, slices.Values([]T{item}))
	case "csv":
		heads, rows := cells([]T{item}, columns)

		return p.csv(heads, rows)
	default:
		words()

		return nil
	}
}

func (p *program) json(value any) error {
	encoder := json.NewEncoder(p.out.file)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")

	return encoder.Encode(value)
}

func ndjson[T any](p *program, values iter.Seq[T]) error {
	encoder := json.NewEncoder(p.out.file)
	encoder.SetEscapeHTML(false)

	for value := range values {
		if err := encoder.Encode(value); err != nil {
			return err
		}
	}

	return nil
}

func (p *program) csv(heads []string, rows [][]any) error {
	writer := csv.NewWriter(p.out.file)
	if err := writer.Write(p.escaped(heads)); err != nil {
		return err
	}

	for _, row := range rows {
		record := make([]string, len(row))
		for i, value := range row {
			record[i] = plain(value)
			if _, isText := value.(string); isText {
				record[i] = p.escaped(record[i : i+1])[0]
			}
		}

		if err := writer.Write(record); err != nil {
			return err
		}
	}

	writer.Flush()

	return writer.Error()
}

// escaped returns texts for CSV. With --escape-formulas, texts that a spreadsheet would run as formulas get an
// apostrophe, as in the CSV of the service.
func (p *program) escaped(texts []string) []string {
	if !p.escape {
		return texts
	}

	safe := slices.Clone(texts)
	for i, text := range safe {
		if strings.ContainsAny(text[:min(len(text), 1)], "=+-@\t\r\n") {
			safe[i] = "'" + text
		}
	}

	return safe
}

// plain formats a value for programs.
func plain(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return value
	case *string:
		if value == nil {
			return ""
		}

		return *value
	case json.Number:
		return value.String()
	case time.Time:
		return value.UTC().Format(time.RFC3339Nano)
	case *time.Time:
		if value == nil {
			return ""
		}

		return plain(*value)
	case bool, int, int32, int64, float64, fmt.Stringer:
		return fmt.Sprint(value)
	default:
		encoded, err := json.Marshal(value)
		if err != nil {
			return fmt.Sprint(value)
		}

		return string(encoded)
	}
}

// shown formats a value for people, and reports whether it is a number, which is right-aligned.
func shown(value any) (text string, number bool) {
	switch value := value.(type) {
	case int64:
		return grouped(value), true
	case int, int32, float64, json.Number:
		return fmt.Sprint(value), true
	case time.Time:
		return moment(value), false
	case *time.Time:
		if value == nil {
			return "", false
		}

		return moment(*value), false
	default:
		return cell(plain(value)), false
	}
}

const (
	gap    = 2
	narrow = 8 // smallest width before columns are dropped
)

// table prints aligned columns that fit the screen: it first shortens the widest columns, then drops columns at the end
// and names them.
func (p *program) table(heads []string, rows [][]any) {
	texts, widths, numbers := layout(heads, rows)
	left := fitColumns(widths, p.out.columns())

	line := func(row []string, style string) {
		out := new(strings.Builder)

		for i, text := range row[:len(row)-left] {
			text = cut(text, widths[i])
			padding := strings.Repeat(" ", widths[i]-textWidth(text))

			switch last := i == len(row)-left-1; {
			case numbers[i]:
				out.WriteString(padding + p.out.style(style, text))
			case last:
				out.WriteString(p.out.style(style, text))
			default:
				out.WriteString(p.out.style(style, text) + padding)
			}

			out.WriteString(strings.Repeat(" ", gap))
		}

		p.out.printf("%s\n", strings.TrimRight(out.String(), " "))
	}

	names := make([]string, len(heads))
	for i, head := range heads {
		names[i] = cell(head)
	}

	line(names, bold)

	for _, row := range texts {
		line(row, "")
	}

	if left > 0 {
		text := fmt.Sprintf("No room for %s: %s", counted(int64(left), "column", "columns"), cell(strings.Join(heads[len(heads)-left:], ", ")))
		p.err.printf("%s\n", p.err.style(dim, cut(text, p.out.columns())))
	}
}

// layout returns the formatted cells, the width of each column, and which columns contain only numbers.
func layout(heads []string, rows [][]any) (texts [][]string, widths []int, numbers []bool) {
	widths, numbers = make([]int, len(heads)), make([]bool, len(heads))
	for i, head := range heads {
		widths[i] = textWidth(cell(head))
		numbers[i] = len(rows) > 0
	}

	for _, row := range rows {
		line := make([]string, len(heads))

		for i, value := range row {
			text, number := shown(value)
			line[i], widths[i] = text, max(widths[i], textWidth(text))
			numbers[i] = numbers[i] && (number || value == nil)
		}

		texts = append(texts, line)
	}

	return texts, widths, numbers
}

// fitColumns narrows columns until all fit, and returns how many at the end do not.
func fitColumns(widths []int, room int) (left int) {
	total := func() (sum int) {
		for _, width := range widths[:len(widths)-left] {
			sum += width + gap
		}

		return sum - gap
	}

	for total() > room {
		widest := 0
		for i := range len(widths) - left {
			if widths[i] > widths[widest] {
				widest = i
			}
		}

		switch {
		case widths[widest] > narrow:
			widths[widest]--
		case left < len(widths)-1:
			left++
		default:
			return left
		}
	}

	return left
}

// fact is a property of an object; a fact without a value is not printed.
type fact struct {
	name  string
	value any
}

// facts prints one fact per line, and wraps long lines.
func (p *program) facts(facts ...fact) {
	width := 0
	for _, fact := range facts {
		if text, _ := shown(fact.value); text != "" {
			width = max(width, textWidth(fact.name))
		}
	}

	for _, fact := range facts {
		text, _ := shown(fact.value)
		if text == "" {
			continue
		}

		text = indent(wrap(text, max(20, p.out.columns()-width-gap)), strings.Repeat(" ", width+gap))
		p.out.printf("%s%s\n", p.out.style(dim, fact.name)+strings.Repeat(" ", width+gap-textWidth(fact.name)), strings.TrimLeft(text, " "))
	}
}
