package record

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Answered is a chunk with the answer of a model.
type Answered struct {
	Chunk  Chunk
	Answer string
}

// Records are the records of a document, in the order of the text.
type Records struct {
	Fields  []Field // with the kinds that were found for open fields
	Records []Record
}

// Flagged counts the flags of a field.
type Flagged struct {
	Field string
	Count int
	Pages []int // ascending, each once
}

// Flagged returns the fields with flags.
func (r *Records) Flagged() (list []Flagged) {
	for i, f := range r.Fields {
		one := Flagged{Field: f.Name}

		for _, record := range r.Records {
			if record.Cells[i].Flag == "" || record.Cells[i].Corrected != nil {
				continue
			}

			one.Count++

			page := record.Cells[i].Place.Page
			if page == 0 {
				page = record.Page
			}

			if at, known := slices.BinarySearch(one.Pages, page); !known {
				one.Pages = slices.Insert(one.Pages, at, page)
			}
		}

		if one.Count > 0 {
			list = append(list, one)
		}
	}

	return list
}

// Assemble returns the records of a document. An error means that an answer does not follow the schema.
func Assemble(fields []Field, style Style, answers []Answered) (Records, error) {
	all := Records{Fields: slices.Clone(fields)}

	var earlier []Record // of the chunk before

	for n, a := range answers {
		found, err := check(n, a.Chunk, fields, a.Answer)
		if err != nil {
			return Records{}, fmt.Errorf("chunk %d: %w", n+1, err)
		}

		if n > 0 {
			earlier, found = join(fields, earlier, found)
		}

		all.Records = append(all.Records, earlier...)
		earlier = found
	}

	all.Records = append(all.Records, earlier...)

	slices.SortStableFunc(all.Records, func(a, b Record) int {
		switch {
		case a.at.before(b.at):
			return -1
		case b.at.before(a.at):
			return 1
		default:
			return a.chunk - b.chunk
		}
	})

	all.resolve(style)

	return all, nil
}

// join joins the records of a chunk with those of the chunk before that are the same: it returns the records that only the chunk before has,
// and those of the chunk.
func join(fields []Field, earlier, later []Record) (left, joined []Record) {
	taken := make([]bool, len(later))

	for _, one := range earlier {
		at := -1

		for n := range later {
			if !taken[n] && same(fields, one, later[n]) {
				at = n

				break
			}
		}

		if at < 0 {
			left = append(left, one)

			continue
		}

		taken[at] = true
		later[at] = merged(one, later[at])
	}

	return left, later
}

// same reports whether two records of overlapping chunks are the same one. If the dataset has a key, its values stand at the same places.
// Otherwise they share a quote, and no field has two values.
func same(fields []Field, a, b Record) bool {
	keyed, shared := false, false

	for i, f := range fields {
		one, other := a.Cells[i], b.Cells[i]
		isSame := one.isSure() && other.isSure() && one.Place == other.Place && one.Said == other.Said

		if f.InKey {
			if keyed = true; !isSame {
				return false
			}
		}

		shared = shared || isSame
	}

	if keyed {
		return true
	}

	for i := range fields {
		if one, other := a.Cells[i], b.Cells[i]; one.isSure() && other.isSure() && (one.Place != other.Place || one.Said != other.Said) {
			return false
		}
	}

	return shared
}

func (c Cell) isSure() bool { return c.Said != "" && (c.Flag == "" || c.Flag == WrongPage) }

// merged returns one record of two that are the same.
func merged(a, b Record) Record {
	r := Record{chunk: a.chunk, Cells: slices.Clone(a.Cells)}

	for i, other := range b.Cells {
		mine := r.Cells[i]
		if better(other) > better(mine) {
			r.Cells[i] = other
		}
	}

	r.locate()

	return r
}

func better(c Cell) int {
	switch {
	case c.Said == "":
		return 0
	case c.Flag == "":
		return 3
	case c.Flag == WrongPage:
		return 2
	default:
		return 1
	}
}

// resolve sets the values: it decides the kinds of open fields and how the document writes numbers and dates.
func (r *Records) resolve(style Style) {
	decimals, orders := make([]rune, len(r.Fields)), make([]Order, len(r.Fields))
	for i := range r.Fields {
		decimals[i], orders[i] = r.decimal(i), r.order(i)
	}

	for i := range r.Fields {
		f := &r.Fields[i]

		own := style
		if own.Decimal == 0 {
			own.Decimal = cmp.Or(decimals[i], agreedOn(decimals))
		}

		if own.Days == AnyOrder {
			own.Days = cmp.Or(orders[i], agreedOn(orders))
		}

		if f.Kind == Open {
			f.Kind = r.kind(i)
		}

		for n := range r.Records {
			c := &r.Records[n].Cells[i]
			if !c.isSure() {
				continue
			}

			value, flag := c.value(*f, own)
			if flag != "" {
				c.Flag, value = flag, ""
			}

			c.Value = value
		}
	}
}

// agreedOn returns what all fields prove that prove something, zero if they differ.
func agreedOn[T comparable](proven []T) (all T) {
	var none T

	for _, one := range proven {
		if one != none && all != none && one != all {
			return none
		}

		if one != none {
			all = one
		}
	}

	return all
}

// decimal returns the only decimal sign that the quotes of a field prove, 0 if there is none or both.
func (r *Records) decimal(i int) (sign rune) {
	for _, record := range r.Records {
		c := record.Cells[i]
		if !c.isSure() || len(c.said.numbers) == 0 {
			continue
		}

		for _, a := range c.amounts() {
			if !shares(c.said.numbers, a.readings) || len(a.readings) != 1 {
				continue
			}

			for proven := range a.readings {
				if sign != 0 && sign != proven {
					return 0
				}

				sign = proven
			}
		}
	}

	return sign
}

// order is decimal for dates.
func (r *Records) order(i int) (order Order) {
	for _, record := range r.Records {
		c := record.Cells[i]
		if !c.isSure() || len(c.said.dates) == 0 {
			continue
		}

		for _, d := range days(c.Quote) {
			if !shares(c.said.dates, d.readings) || len(d.readings) != 1 {
				continue
			}

			for proven := range d.readings {
				if proven == AnyOrder {
					continue
				}

				if order != AnyOrder && order != proven {
					return AnyOrder
				}

				order = proven
			}
		}
	}

	return order
}

// kind returns what all values of an open field are: numbers with one unit, dates, or texts.
func (r *Records) kind(i int) Kind {
	kind, unit := Open, ""

	for _, record := range r.Records {
		c := record.Cells[i]
		if !c.isSure() {
			continue
		}

		now := Text

		switch {
		case len(c.said.dates) > 0 && c.said.clock == "":
			if now = Date; c.Said != "" && len(foldText(c.Said)) > maxDate {
				now = Text
			}
		case len(c.said.numbers) > 0 && !c.said.leading:
			if now = Number; c.unit() != "" && unit != "" && !sameUnit(unit, c.unit()) {
				now = Text
			}

			if c.unit() != "" {
				unit = c.unit()
			}
		}

		if kind != Open && kind != now {
			return Text
		}

		kind = now
	}

	if kind == Open {
		return Text
	}

	return kind
}

const maxDate = 24 // bytes of a date; a longer text only contains one

func (c Cell) unit() string {
	if c.near != "" {
		return c.near
	}

	return c.said.unit
}

// value returns the normalized value of a cell that passed the other checks.
func (c Cell) value(f Field, style Style) (string, Flag) {
	switch f.Kind {
	case Number, Whole:
		number, flag := c.number(style)
		if flag != "" {
			return "", flag
		}

		if f.Unit != "" && c.unit() != "" {
			number, _ = convert(number, c.unit(), f.Unit)
		}

		if f.Kind == Whole && strings.Contains(number, ".") {
			return "", WrongType
		}

		return number, ""
	case Date, Timestamp:
		iso, flag := c.date(style)
		if flag != "" {
			return "", flag
		}

		if f.Kind == Timestamp && c.said.clock != "" {
			iso += " " + c.said.clock
		}

		return iso, ""
	case Time:
		return orFlag(c.said.clock)
	case Truth:
		return orFlag(c.said.truth)
	default:
		return c.Said, ""
	}
}

func orFlag(value string) (string, Flag) {
	if value == "" {
		return "", WrongType
	}

	return value, ""
}

// number returns the only reading of a number that the value, the quote and the style of the document have in common.
func (c Cell) number(style Style) (string, Flag) {
	if len(c.said.numbers) == 0 {
		return "", WrongType
	}

	var common []string

	for _, a := range c.amounts() {
		common = append(common, agreed(c.said.numbers, a.readings, style.Decimal, 0)...)
	}

	return only(common)
}

func (c Cell) date(style Style) (string, Flag) {
	if len(c.said.dates) == 0 {
		return "", WrongType
	}

	var common []string

	for _, d := range days(c.Quote) {
		common = append(common, agreed(c.said.dates, d.readings, style.Days, AnyOrder)...)
	}

	return only(common)
}

// agreed returns the readings of a quote that a value has too. If the style of the document is known, the quote has no other reading.
func agreed[K comparable](said, quote map[K]string, style, unknown K) (common []string) {
	for how, reading := range quote {
		if _, known := quote[style]; known && style != unknown && how != style {
			continue
		}

		for _, one := range said {
			if one == reading && !slices.Contains(common, reading) {
				common = append(common, reading)
			}
		}
	}

	return common
}

// only returns the only one of the values. Several are a matter of style that nothing decides.
func only(values []string) (string, Flag) {
	slices.Sort(values)

	switch values = slices.Compact(values); len(values) {
	case 0:
		return "", ValueNotInQuote
	case 1:
		return values[0], ""
	default:
		return "", WrongType
	}
}
