package documents

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Mistake is a kind of mistakes that the model makes.
type Mistake string

// The mistakes. A check must find all but the last one, which no check can find: the value of another field, rightly quoted.
const (
	WrongValue  Mistake = "wrong value"
	OtherRecord Mistake = "value from another record"
	Invented    Mistake = "invented value"
	WrongPage   Mistake = "wrong page"
	WrongUnit   Mistake = "wrong unit"
	WrongType   Mistake = "wrong type"
	OtherField  Mistake = "value of another field"
)

// Mistakes returns the mistakes that the checks must find.
func Mistakes() []Mistake {
	return []Mistake{WrongValue, OtherRecord, Invented, WrongPage, WrongUnit, WrongType}
}

// plant describes the field in which a mistake is made.
type plant struct {
	model    *Model
	document *Document
	record   int
	field    string
	gold     Gold
	parts    []part
	random   *rand.Rand
}

// mistake changes a claim. It reports false if this mistake cannot be made in the field.
func (p plant) mistake(kind Mistake, right claim) (claim, bool) {
	switch kind {
	case WrongValue:
		return p.wrongValue(right)
	case OtherRecord:
		return p.otherRecord(right)
	case Invented:
		return p.invented(right)
	case WrongPage:
		return p.wrongPage(right)
	case WrongUnit:
		return p.wrongUnit(right)
	case WrongType:
		return p.wrongType(right)
	default:
		return p.otherField(right)
	}
}

// wrongValue changes a digit, or a word if there is none.
func (p plant) wrongValue(c claim) (claim, bool) {
	text := []byte(c.Value)

	var digits []int

	for n, b := range text {
		if unicode.IsDigit(rune(b)) {
			digits = append(digits, n)
		}
	}

	if len(digits) == 0 {
		c.Value = p.otherText(c.Quote)

		return c, c.Value != ""
	}

	at := digits[p.random.IntN(len(digits))]
	text[at] = '1' + (text[at]-'0'+byte(p.random.IntN(8)))%9
	changed := string(text)
	isSame := changed == c.Value || strings.Contains(c.Quote, changed)
	c.Value = changed

	return c, !isSame
}

// otherText returns a value of another record that is not in the quote.
func (p plant) otherText(quote string) string {
	for _, n := range p.others() {
		if g := p.document.Records[n][p.field]; g.Said != "" && !strings.Contains(quote, g.Said) {
			return g.Said
		}
	}

	return ""
}

// others returns the other records, the nearest ones first.
func (p plant) others() (list []int) {
	for away := 1; away < len(p.document.Records); away++ {
		for _, n := range []int{p.record + away, p.record - away} {
			if n >= 0 && n < len(p.document.Records) {
				list = append(list, n)
			}
		}
	}

	return list
}

// otherRecord replaces value and quote by those of a nearby record that the model was sent.
func (p plant) otherRecord(c claim) (claim, bool) {
	var near []Gold

	for _, n := range p.others() {
		g := p.document.Records[n][p.field]
		if g.Said != "" && !g.shared && g.Value != p.gold.Value && g.isIn(p.parts) {
			near = append(near, g)
		}
	}

	if len(near) == 0 || p.gold.shared {
		return c, false
	}

	return p.model.quote(p.document, near[p.random.IntN(min(len(near), 4))]), true
}

// invented claims a value that the document does not have, in words that look like its own.
func (p plant) invented(c claim) (claim, bool) {
	value := "Zinnober & Co"

	switch p.kind() {
	case double, bigint:
		value = pick(p.random, []string{"4711", "8888", "31337"})
	case date:
		value = pick(p.random, []string{"2031-12-24", "24.12.2031"})
	}

	if strings.Contains(c.Quote, value) {
		return c, false
	}

	c.Quote = strings.Replace(c.Quote, c.Value, value, 1)
	c.Value = value

	return c, true
}

func (p plant) kind() string {
	for _, f := range KindOf(p.document).Fields {
		if f.Name == p.field {
			return f.Type
		}
	}

	return ""
}

// wrongPage names another page of the document, or one that it does not have.
func (p plant) wrongPage(c claim) (claim, bool) {
	if c.Page++; c.Page > len(p.document.Pages) && p.gold.Page > 1 {
		c.Page = p.gold.Page - 1
	}

	return c, true
}

// wrongUnit replaces the unit of the value by another one.
func (p plant) wrongUnit(c claim) (claim, bool) {
	for _, one := range [][2]string{
		{"€", "$"},
		{" kg", " ml"},
		{" g", " ml"},
		{" kWh", " kg"},
		{" MWh", " kWh"},
		{" t", " kg"},
		{" pcs", " kg"},
		{" Stk", " kg"},
		{" Stück", " m"},
		{" days", " months"},
		{" Tagen", " Monaten"},
		{" m", " kg"},
		{" %", " t"},
	} {
		if strings.HasSuffix(c.Value, one[0]) || (one[0] == "€" && strings.HasPrefix(c.Value, one[0])) {
			c.Value = strings.Replace(c.Value, one[0], one[1], 1)

			return c, true
		}
	}

	return c, false
}

var word = regexp.MustCompile(`\pL{5,}`)

// wrongType replaces a number or a date by a word of the same line.
func (p plant) wrongType(c claim) (claim, bool) {
	line := p.document.line(p.gold)
	words := word.FindAllString(line, -1)

	if p.kind() == varchar || len(words) == 0 || len(line) > longestQuote {
		return c, false
	}

	c.Quote, c.Value = line, words[p.random.IntN(len(words))]

	return c, !slices.Contains(germanMonths(), c.Value)
}

// otherField replaces the value by that of another field of the same record. Both fields have the same type.
func (p plant) otherField(c claim) (claim, bool) {
	record := p.document.Records[p.record]

	for _, f := range KindOf(p.document).Fields {
		g := record[f.Name]
		if f.Name != p.field && f.Type == p.kind() && g.Said != "" && g.Value != p.gold.Value && g.isIn(p.parts) {
			return p.model.quote(p.document, g), true
		}
	}

	return c, false
}
