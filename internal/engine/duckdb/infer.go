package duckdb

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quern.dev/quern/internal/engine"
)

// candidate is a parser that may fit a column of texts.
type candidate struct {
	parser

	alias   string
	against bool           // the parser contradicts the decimal and thousands separators in the options
	form    *regexp.Regexp // the compiled pattern, for checks in Go
}

func (c candidate) takes(text string) bool { return c.form.MatchString(text) }

func compiled(list []candidate) []candidate {
	for i := range list {
		list[i].form = regexp.MustCompile(`^(?:` + list[i].pattern + `)$`)
	}

	return list
}

// candidates returns the candidates in the order in which they are tried. The first one that fits every text of the
// sample is used.
func candidates(options engine.Options) ([]candidate, error) {
	list := []candidate{
		{parser: booleans()},
		{parser: integers()},
		{parser: doubles(), alias: "doubles"},
		{parser: isoDates()},
		{parser: slashDates()},
		{parser: dotDates()},
		{parser: namedMonth()},
		{parser: dayOfMonth()},
		{parser: timestamps()},
		{parser: times()},
		{parser: dayFirst(), alias: "day_first"},
		{parser: monthFirst(), alias: "month_first"},
		{parser: commaDoubles(), alias: "comma"},
		{parser: pointDoubles(), alias: "point"},
	}

	var first []candidate

	if options.DateFormat != "" {
		given, err := dated(options.DateFormat)
		if err != nil {
			return nil, err
		}

		first = append(first, candidate{parser: given})
	}

	if options.Decimal != "" || (options.Thousands != nil && *options.Thousands != "") {
		decimal, thousands := options.Signs()

		// Integers and dates do not depend on the options. Other numbers are parsed with the signs of the options.
		first = append(first, list[0], list[1], candidate{parser: numbers(engine.Double, decimal, thousands)})
		list = list[2:]

		for i := range list {
			list[i].against = list[i].kind == engine.Double
		}
	}

	return compiled(append(first, list...)), nil
}

// findTypes sets the type of every column of texts. data is the start of the records.
func (p *program) findTypes(s *source, data []byte) error {
	list, err := candidates(p.options)
	if err != nil {
		return err
	}

	trials := s.trials(list, data, p.options)
	s.onlyTexts(trials, list)

	tallies, err := p.tallyFirst(s, slices.Clone(trials), list)
	if err != nil {
		return err
	}

	commaFile := false
	for _, t := range tallies {
		commaFile = commaFile || (t.ProvesComma && fits(list, t, "comma"))
	}

	for i := range s.columns {
		if t := tallies[i]; t.Texts > 0 {
			s.columns[i].kind = engine.Varchar
			s.decide(&s.columns[i], list, t, commaFile && p.options.Decimal == "")
		}
	}

	if p.options.DateFormat != "" {
		s.doubtDates(p.options.DateFormat, trials, tallies)
	}

	if err := p.findSigned(s, list, tallies); err != nil {
		return err
	}

	return p.doubtOutliers(s, list, data)
}

// doubtDates adds a doubt for each column whose values do not have the format of the option dateFormat. That format is
// the first of the candidates.
func (s *source) doubtDates(format string, trials []trial, tallies map[int]tally) {
	texts, dates := false, false

	for i, c := range s.columns {
		fits := tallies[i].Fits[0]
		texts, dates = texts || tallies[i].Texts > 0, dates || fits || trials[i].dated

		if trials[i].dated && !fits {
			s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Option: "dateFormat", Message: fmt.Sprintf("Not all values are dates in the form %s.", format)})
		}
	}

	if texts && !dates {
		s.doubts = append(s.doubts, engine.Doubt{Option: "dateFormat", Message: fmt.Sprintf("No column has dates in the form %s.", format)})
	}
}

func fits(list []candidate, t tally, alias string) bool {
	i := slices.IndexFunc(list, func(c candidate) bool { return c.alias == alias })

	return i >= 0 && t.Fits[i]
}

// decide uses the first candidate that fits, unless there is a doubt about it.
func (s *source) decide(c *column, list []candidate, t tally, commaFile bool) {
	i := slices.Index(t.Fits, true)
	if i < 0 || t.Texts == t.Marked {
		return
	}

	chosen := list[i]
	doubt := func(option, message string, suggestions ...string) {
		s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Option: option, Message: message, Suggestions: suggestions})
	}

	switch {
	case chosen.against:
		doubt("decimal", "The values look like numbers, but do not use the signs of the options decimal and thousands.", ".", ",")

		return
	case t.Marked > 0:
		doubt("nullValues", fmt.Sprintf("All values except %q have the type %s. Add it to nullValues if it means that a value is missing.", shorten(t.Marker), chosen.kind))

		return
	case chosen.kind == engine.Bigint && saysText(c.name):
		return
	case chosen.alias == "day_first" && fits(list, t, "month_first"):
		doubt("dateFormat", "The dates could be dd/mm/yyyy or mm/dd/yyyy.", "dd/mm/yyyy", "mm/dd/yyyy")

		return
	case chosen.alias == "comma" && !t.ProvesComma, chosen.alias == "point" && !t.ProvesPoint:
		doubt("decimal", "The comma could be the decimal sign or group the digits.", ".", ",")

		return
	case chosen.alias == "comma" && t.ProvesPoint:
		return
	case chosen.alias == "doubles" && t.OnlyGroups && commaFile:
		doubt("decimal", "Other columns have a decimal comma, so the point here could group the digits.", ".", ",")

		return
	}

	c.kind, c.parser = chosen.kind, chosen.parser
}

// textWords are words in column names that show that the digits in the column are not numbers.
var textWords = []string{ //nolint:gochecknoglobals // a constant
	"zip", "postal", "postcode", "plz", "phone", "tel", "telephone", "fax", "mobile", "iban", "ean", "isbn", "gtin", "upc", "vat", "ssn", "sku",
}

var wordEnd = regexp.MustCompile(`[^\pL]+|(\p{Ll})(\p{Lu})`)

func saysText(name string) bool {
	for word := range strings.FieldsSeq(wordEnd.ReplaceAllString(name, "$1 $2")) {
		if slices.Contains(textWords, strings.ToLower(word)) {
			return true
		}
	}

	return false
}

// findSigned handles columns in which all texts start or end with % or the same currency sign.
func (p *program) findSigned(s *source, list []candidate, tallies map[int]tally) error {
	for i := range s.columns {
		c, t := &s.columns[i], tallies[i]
		if c.kind != engine.Varchar || len(t.Signs) == 0 || slices.Contains(t.Signs, "") {
			continue
		}

		if slices.Sort(t.Signs); len(t.Signs) > 1 {
			s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Option: "types", Message: "The values have different currencies: " + strings.Join(t.Signs, ", ") + "."})

			continue
		}

		if err := p.readSigned(s, i, t.Signs[0], list); err != nil {
			return err
		}
	}

	return nil
}

// readSigned detects the type of a column's texts without their sign.
func (p *program) readSigned(s *source, i int, sign string, list []candidate) error {
	list = slices.DeleteFunc(slices.Clone(list), func(c candidate) bool { return c.kind != engine.Double })

	bare := *s
	bare.columns = slices.Clone(s.columns)
	bare.columns[i].raw = withoutSign(s.columns[i].raw, sign)

	tallies, err := p.tally(&bare, []trial{all(i, list)}, list)
	if err != nil {
		return err
	}

	c := &s.columns[i]
	if s.decide(c, list, tallies[i], false); c.kind != engine.Varchar {
		c.parser = c.parser.stripped(sign)
		s.doubts = append(s.doubts, engine.Doubt{Column: c.name, Message: fmt.Sprintf("The values are kept as numbers, without %s.", sign)})
	}

	return nil
}
