package grounding

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"quern.dev/quern/internal/lexicon"
)

// Limits of a result that is rendered as text. Larger results are only counted, because they are easier to read as data.
const (
	textRows    = 10
	textColumns = 6
	textBytes   = 4 << 10
	cellRunes   = 60
	lineColumns = 4 // of a single row that is a sentence
)

const empty = "(empty)" // a cell without a value

// Column is a column of a result, with its SQL type.
type Column struct{ Name, Type string }

// Render returns a result as text: one row as a sentence, a few rows as a Markdown table, and the number of rows of a larger
// result. lead says what the result is, and may be empty. Numbers are rounded for reading: the exact values are in the rows.
//
// Cells are not trusted. They cannot be markup, and an address in a cell is not a link.
func Render(lead string, columns []Column, rows []json.RawMessage, count int64) string {
	lead = sentenceLead(lead)

	if count == int64(len(rows)) && count <= textRows && len(columns) > 0 && len(columns) <= textColumns {
		cells := make([][]string, len(rows))
		for i, row := range rows {
			cells[i] = rendered(columns, row, count == 1)
		}

		text := renderedTable(lead, columns, cells)
		if count == 1 && len(columns) <= lineColumns {
			text = renderedRow(lead, columns, cells[0])
		}

		if len(text) <= textBytes {
			return text
		}
	}

	if lead != "" {
		lead += ": "
	}

	if count == 1 {
		return lead + "1 row, listed in the table of the answer."
	}

	return fmt.Sprintf("%s%d rows, listed in the table of the answer.", lead, count)
}

func renderedRow(lead string, columns []Column, cells []string) string {
	parts := slices.Clone(cells)
	if len(columns) > 1 || lead == "" {
		for i, c := range columns {
			if name := inCell(c.Name); !beginsWith(cells[i], name) {
				parts[i] = name + " " + cells[i]
			}
		}
	}

	if lead != "" {
		lead += ": "
	}

	if len(parts) == 1 && parts[0] == empty { // a figure of no rows
		return lead + "no value."
	}

	return lead + strings.Join(parts, ", ") + "."
}

// beginsWith reports whether a cell repeats the name of its column: "Kunde Nr. 69" in the column Kunde.
func beginsWith(cell, name string) bool {
	if len(cell) < len(name) || !strings.EqualFold(cell[:len(name)], name) {
		return false
	}

	next, _ := utf8.DecodeRuneInString(cell[len(name):])

	return !unicode.IsLetter(next) && !unicode.IsDigit(next)
}

func renderedTable(lead string, columns []Column, cells [][]string) string {
	var head, rule, body strings.Builder

	for _, c := range columns {
		head.WriteString("| " + inCell(c.Name) + " ")

		if isNumeric(c.Type) {
			rule.WriteString("|---:")
		} else {
			rule.WriteString("|---")
		}
	}

	for _, row := range cells {
		body.WriteString("\n| " + strings.Join(row, " | ") + " |")
	}

	if lead != "" {
		lead += ":\n\n"
	}

	return lead + head.String() + "|\n" + rule.String() + "|" + body.String()
}

var emphasis = regexp.MustCompile(`\*((?:[^*\\]|\\.)+)\*`)

// sentenceLead returns an interpretation as the beginning of a sentence: with a capital letter, without the marks of names
// and without a point at its end.
func sentenceLead(text string) string {
	text = strings.TrimRight(emphasis.ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1"), ".:?! ")
	first, size := utf8.DecodeRuneInString(text)

	if size == 0 {
		return ""
	}

	return string(unicode.ToUpper(first)) + text[size:]
}

// rendered returns the cells of a row as text. A unit is added only in a sentence: in a table, the header names the column and its unit.
func rendered(columns []Column, row json.RawMessage, units bool) []string {
	values := map[string]json.RawMessage{}
	_ = json.Unmarshal(row, &values) // the rows are ours; a cell that is missing is empty

	cells := make([]string, len(columns))

	for i, c := range columns {
		one := readCell(values[c.Name])

		switch number, isNumber := plainNumber(one.text); {
		case one.null:
			cells[i] = empty
		case isNumber && isNumeric(c.Type):
			cells[i] = rounded(c, one.text, number)

			if unit := unitOfName(c.Name, wordsOf(c.Name)); unit != "" && units {
				cells[i] += " " + unit
			}
		default:
			cells[i] = inCell(one.text)
		}
	}

	return cells
}

func isNumeric(sqlType string) bool {
	base, _, _ := strings.Cut(strings.ToLower(sqlType), "(")

	switch base {
	case "tinyint", "smallint", "integer", "bigint", "hugeint", "utinyint", "usmallint", "uinteger", "ubigint", "uhugeint", "int", "float", "real", "double", "decimal", "numeric":
		return true
	default:
		return false
	}
}

const (
	centDecimals = 2 // of amounts of money and of long fractions
	mostDecimals = 4 // a longer fraction comes from a calculation and not from a person
	small        = 3 // significant digits of a fraction below one
)

// rounded returns a number for reading: amounts of money with two decimals, long fractions with two or, below one, with
// three significant digits. Whole numbers are not changed, because they may be identifiers.
func rounded(c Column, text string, number *big.Rat) string {
	_, fraction, broken := strings.Cut(text, ".")
	words := wordsOf(c.Name)

	switch {
	case !broken && !strings.ContainsAny(text, "eE"):
		return text
	case slices.ContainsFunc(words, lexicon.IsMoneyName) || lexicon.IsMoney(unitOfName(c.Name, words)):
		return number.FloatString(centDecimals)
	case len(fraction) <= mostDecimals && !strings.ContainsAny(text, "eE"):
		return text
	case new(big.Rat).Abs(number).Cmp(power(0)) >= 0:
		return trimZeros(number.FloatString(centDecimals))
	}

	decimals := small
	for size := new(big.Rat).Abs(number); size.Sign() > 0 && size.Cmp(power(-1)) < 0 && decimals < maxDigits; decimals++ {
		size.Mul(size, power(1))
	}

	return trimZeros(number.FloatString(decimals))
}

func trimZeros(text string) string { return strings.TrimRight(strings.TrimRight(text, "0"), ".") }

var isAddress = regexp.MustCompile(`(?i)[a-z]:\S|//|www\.|\S@\S`)

// inCell escapes a text for a cell of a Markdown table: it becomes one line, and nothing in it is markup.
func inCell(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || !unicode.IsPrint(r) }), " ")

	if runes := []rune(text); len(runes) > cellRunes {
		text = string(runes[:cellRunes-1]) + "…"
	}

	if isAddress.MatchString(text) {
		return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(text) + "`"
	}

	var b strings.Builder

	before := ' '

	for i, r := range text {
		next, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
		within := (unicode.IsLetter(before) || unicode.IsDigit(before)) && (unicode.IsLetter(next) || unicode.IsDigit(next))

		if strings.ContainsRune("\\`*<>[]|~", r) || r == '_' && !within || i == 0 && (r == '#' || r == '+' || r == '-') && next == ' ' {
			b.WriteByte('\\')
		}

		b.WriteRune(r)
		before = r
	}

	if b.Len() == 0 {
		return empty
	}

	return b.String()
}
