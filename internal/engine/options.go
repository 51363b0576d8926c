package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
)

// OptionProblem is an option with a value that no file can be read with.
type OptionProblem struct{ Option, Problem string }

// Check returns the first option with a value that no file can be read with, whatever the file has, and nil if there is none.
func (o Options) Check() *OptionProblem {
	number := func(sign string) bool { return strings.ContainsAny(sign, "0123456789-") }

	quote := `"`
	if o.Quote != nil {
		quote = *o.Quote
	}

	decimal, thousands := o.Signs()

	switch {
	case len(o.Delimiter) > maxDelimiter || strings.ContainsAny(o.Delimiter, "\r\n\x00") || (quote != "" && strings.Contains(o.Delimiter, quote)):
		return &OptionProblem{"delimiter", "must be at most four bytes, without line ends and without the quote, such as , ; | or a tab"}
	case len(quote) > 1 || strings.ContainsAny(quote, "\r\n\x00"):
		return &OptionProblem{"quote", "must be one byte, or empty for none"}
	case o.SkipRows < 0:
		return &OptionProblem{"skipRows", "must not be less than 0"}
	case number(decimal) || number(thousands) || decimal == thousands || !utf8.ValidString(decimal) || !utf8.ValidString(thousands):
		return &OptionProblem{"decimal", "and thousands must be two different signs that are not digits, such as , and ."}
	}

	if _, problem := DateTokens(o.DateFormat); problem != "" {
		return &OptionProblem{"dateFormat", problem}
	}

	if _, problem := EncodingOf(o.Encoding); problem != "" {
		return &OptionProblem{"encoding", problem}
	}

	for _, column := range slices.Sorted(maps.Keys(o.Types)) {
		if kind := o.Types[column]; !IsType(kind) {
			return &OptionProblem{"types", fmt.Sprintf("%q of the column %q is not a type. Use boolean, bigint, double, decimal(p,s), date, timestamp, time, varchar or json", kind, column)}
		}
	}

	return nil
}

const maxDelimiter = 4 // bytes

// Signs returns the decimal sign and the sign that groups digits.
func (o Options) Signs() (decimal, thousands string) {
	decimal = cmp.Or(o.Decimal, ".")
	if o.Thousands != nil {
		thousands = *o.Thousands
	}

	return decimal, thousands
}

// DateTokens returns the tokens and the separators of a format of dates. problem is empty if there is none.
func DateTokens(format string) (tokens []string, problem string) {
	known := []string{"yyyy", "yy", "mm", "m", "dd", "d", "HH", "MM", "SS"}

	for rest := format; rest != ""; {
		at := slices.IndexFunc(known, func(token string) bool { return strings.HasPrefix(rest, token) })

		token := rest[:1]
		if at >= 0 {
			token = known[at]
		} else if c := rest[0]; c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' && c != 'T' || c >= '0' && c <= '9' || c == '%' || c < ' ' || c > '~' {
			return nil, fmt.Sprintf("%q is not supported. Use yyyy, yy, mm, m, dd, d, HH, MM and SS with separators between them", token)
		}

		tokens = append(tokens, token)
		rest = rest[len(token):]
	}

	return tokens, ""
}

// EncodingOf returns the encoding with a name, and nil for an empty name. problem is empty if there is one.
func EncodingOf(name string) (found encoding.Encoding, problem string) {
	if name == "" {
		return nil, ""
	}

	// The registry contains latin1 but not latin-1.
	found, err := htmlindex.Get(strings.Replace(strings.ToLower(strings.TrimSpace(name)), "latin-", "latin", 1))
	if err != nil {
		return nil, fmt.Sprintf("%q is not known. Try utf-8, utf-16, latin-1 or windows-1252", name)
	}

	return found, ""
}

// IsType reports whether kind is a type that a column can have.
func IsType(kind string) bool {
	_, _, isDecimal := DecimalOf(kind)

	return isDecimal || slices.Contains([]string{Boolean, Bigint, Double, Date, Timestamp, Time, Varchar, JSON}, kind)
}
