package record

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// Anchor is where a record stands in a document, so that it is found again when the document is read again.
type Anchor struct {
	Page  int `json:"page"`  // 0 if no quote of the record was found
	From  int `json:"from"`  // first character of its own quotes on that page
	To    int `json:"to"`    // end of the last of these quotes
	Rank  int `json:"rank"`  // position among the records with the same place, from 0
	Ranks int `json:"ranks"` // number of records with the same place
}

// Correction is what a person decided about a field of a record.
type Correction struct {
	Anchor Anchor
	Key    map[string]string // values that the document proves for the key fields of the record
	Field  string
	Value  string // as Normalize returns it; "" if the field has no value
}

// Read returns what the document proves.
func (c Cell) Read() string {
	if c.Corrected != nil {
		return c.Proven
	}

	return c.Value
}

// Key returns what the document proves for the fields of the key.
func (r *Records) Key(n int) map[string]string {
	key := map[string]string{}

	for i, f := range r.Fields {
		if f.InKey {
			key[f.Name] = r.Records[n].Cells[i].Read()
		}
	}

	return key
}

// Anchors returns the place of each record. The place covers the quotes on lines that no other record quotes, because all positions of an invoice
// quote its head. A record without such a line has the place of the quotes that no other record has, or else of all its quotes.
func (r *Records) Anchors() []Anchor {
	lines, places := map[Place]int{}, map[Place]int{}

	for _, one := range r.Records {
		for _, list := range []struct {
			counts map[Place]int
			of     func(c Cell) Place
		}{{lines, func(c Cell) Place { return c.line }}, {places, func(c Cell) Place { return c.Place }}} {
			seen := map[Place]bool{}

			for _, c := range one.Cells {
				if at := list.of(c); c.isPlaced() && !seen[at] {
					seen[at] = true
					list.counts[at]++
				}
			}
		}
	}

	anchors, same := make([]Anchor, len(r.Records)), map[Anchor]int{}

	for n, one := range r.Records {
		for _, isOwn := range []func(c Cell) bool{
			func(c Cell) bool { return c.isPlaced() && lines[c.line] == 1 },
			func(c Cell) bool { return c.isPlaced() && places[c.Place] == 1 },
			Cell.isPlaced,
			func(c Cell) bool { return c.Place.found() },
		} {
			if anchors[n] = one.extent(isOwn); anchors[n].Page > 0 {
				break
			}
		}

		place := anchors[n]
		anchors[n].Rank = same[place]
		same[place]++
	}

	for n, a := range anchors {
		anchors[n].Ranks = same[Anchor{Page: a.Page, From: a.From, To: a.To}]
	}

	return anchors
}

// isPlaced reports whether the quote shows where the record is.
func (c Cell) isPlaced() bool { return c.Place.found() && (c.Flag == "" || c.Flag == WrongPage) }

// extent returns the place of the chosen quotes on the first page that has one.
func (r *Record) extent(chosen func(c Cell) bool) (a Anchor) {
	for _, c := range r.Cells {
		switch p := c.Place; {
		case !chosen(c) || (a.Page > 0 && p.Page > a.Page):
		case a.Page == 0 || p.Page < a.Page:
			a = Anchor{Page: p.Page, From: p.From, To: p.To}
		default:
			a.From, a.To = min(a.From, p.From), max(a.To, p.To)
		}
	}

	return a
}

// Correct applies corrections and returns those that it could not apply: it found no record or several records at the place, or the value does
// not have the kind of the field. Of two corrections of the same field, the later one counts.
func (r *Records) Correct(list []Correction) (left []Correction) {
	if len(list) == 0 {
		return nil
	}

	anchors, onPage := r.Anchors(), map[int][]int{}
	for n, a := range anchors {
		onPage[a.Page] = append(onPage[a.Page], n)
	}

	for _, c := range list {
		i := slices.IndexFunc(r.Fields, func(f Field) bool { return f.Name == c.Field })
		n := r.find(c, anchors, onPage[c.Anchor.Page])

		if i < 0 || n < 0 || (c.Value != "" && !fits(r.Fields[i].Kind, c.Value)) {
			left = append(left, c)

			continue
		}

		cell := &r.Records[n].Cells[i]
		cell.Proven, cell.Value, cell.Corrected = cell.Read(), c.Value, &c.Anchor
	}

	return left
}

const twice = 2

// find returns the record that a correction is about, -1 if that is not certain: the one at the same place, or one that overlaps it by at
// least the half of the shorter place, and twice as much as any other.
func (r *Records) find(c Correction, anchors []Anchor, onPage []int) int {
	candidates := slices.DeleteFunc(slices.Clone(onPage), func(n int) bool { return anchors[n].Page == 0 || !r.hasKey(n, c.Key) })

	if at := slices.IndexFunc(candidates, func(n int) bool { return anchors[n] == c.Anchor }); at >= 0 {
		return candidates[at]
	}

	found, most, second := -1, 0.0, 0.0

	for _, n := range candidates {
		a := anchors[n]

		// Of several records at one place, only the key can tell which one is still there.
		shared := min(a.To, c.Anchor.To) - max(a.From, c.Anchor.From)
		if shared <= 0 || (a.From == c.Anchor.From && a.To == c.Anchor.To && len(c.Key) == 0) {
			continue
		}

		share := float64(shared) / float64(max(a.To, c.Anchor.To)-min(a.From, c.Anchor.From))
		if twice*shared >= min(a.To-a.From, c.Anchor.To-c.Anchor.From) && share > most {
			found, most, second = n, share, most
		} else {
			second = max(second, share)
		}
	}

	if twice*second > most {
		return -1
	}

	return found
}

// hasKey reports whether a record has these values of the key, as far as the dataset still has the same key.
func (r *Records) hasKey(n int, key map[string]string) bool {
	for i, f := range r.Fields {
		if want, known := key[f.Name]; f.InKey && known && want != r.Records[n].Cells[i].Read() {
			return false
		}
	}

	return true
}

// Normalize returns a value that a person gives for a field as it is loaded, and the flag that says why it cannot be.
func Normalize(f Field, style Style, text string) (string, Flag) {
	text = foldText(withoutNUL(text))
	c := Cell{Said: text, Quote: text, said: readValue(text)}

	near, found := c.inQuote(f.Kind)
	if c.near = near; !found {
		return "", WrongType
	}

	if isNumber := f.Kind == Number || f.Kind == Whole; isNumber && f.Unit != "" && c.unit() != "" {
		if _, ok := convert("1", c.unit(), f.Unit); !ok {
			return "", WrongUnit
		}
	}

	return c.value(f, style)
}

var (
	decimalPoint = regexp.MustCompile(`^-?[0-9]+(?:\.[0-9]+)?$`)
	timeOfDay    = regexp.MustCompile(`^[0-9]{2}:[0-9]{2}:[0-9]{2}$`)
)

// fits reports whether a normalized value is one of a kind. The kind may be another one than when the value was normalized.
func fits(kind Kind, value string) bool {
	isDay := func(text string) bool {
		_, err := time.Parse(time.DateOnly, text)

		return err == nil
	}

	switch kind {
	case Number:
		return decimalPoint.MatchString(value)
	case Whole:
		return decimalPoint.MatchString(value) && !strings.Contains(value, ".")
	case Date:
		return isDay(value)
	case Timestamp:
		day, clock, has := strings.Cut(value, " ")

		return isDay(day) && (!has || timeOfDay.MatchString(clock))
	case Time:
		return timeOfDay.MatchString(value)
	case Truth:
		return value == "true" || value == "false"
	default:
		return true
	}
}
