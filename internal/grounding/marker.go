package grounding

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// marker is a reference that the writer put after a figure.
type marker struct {
	at     int // position in the text without markers
	result result
}

const maxMarker = 1000

// strip removes the markers from an answer. Text that the answer repeats from a cell is not a marker.
func strip(answer string, d *rowData) (string, []*marker) {
	var (
		text    strings.Builder
		markers []*marker
	)

	if !utf8.ValidString(answer) {
		answer = strings.ToValidUTF8(answer, "\uFFFD")
	}

	for rest, done := answer, 0; ; {
		before, after, found := strings.Cut(rest, "[[")
		if !found {
			text.WriteString(rest)

			return text.String(), markers
		}

		length := markerEnd(after)
		if length < 0 || d.isCell(answer, done+len(before), after[:length]) {
			keep := len(before) + len("[[")
			text.WriteString(rest[:keep])
			rest, done = rest[keep:], done+keep

			continue
		}

		text.WriteString(strings.TrimRight(before, " \u00a0\u202f"))
		markers = append(markers, &marker{at: text.Len(), result: d.evaluate(after[:length])})
		skip := len(before) + len("[[") + length + len("]]")
		rest, done = rest[skip:], done+skip
	}
}

// markerEnd returns the position at which the text of a marker ends, or -1. Brackets in a quoted name do not end it.
func markerEnd(text string) int {
	text, _, _ = strings.Cut(text[:min(len(text), maxMarker)], "\n")

	first := strings.Index(text, "]]")
	if first < 0 {
		return -1
	}

	inQuotes := false

	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\' && inQuotes:
			i++
		case text[i] == '"':
			inQuotes = !inQuotes
		case !inQuotes && strings.HasPrefix(text[i:], "]]"):
			return i
		}
	}

	return first // a quote is not closed
}

// isCell reports whether the brackets at a position of the answer are part of the text of a cell that the answer
// repeats.
func (d *rowData) isCell(answer string, at int, body string) bool {
	head, _, _ := strings.Cut(body, "]]")

	return slices.ContainsFunc(d.brackets[head], func(cell string) bool {
		for from := 0; ; {
			i := strings.Index(cell[from:], "[["+head)
			if i < 0 {
				return false
			}

			if begin := at - from - i; begin >= 0 && strings.HasPrefix(answer[begin:], cell) {
				return true
			}

			from += i + 1
		}
	})
}

// attach assigns each marker to the figure before it: the nearest figure that equals it, else the nearest one. If the
// words before a marker are the text of its cell, they become a figure.
func (c *checker) attach(markers []*marker) {
	window := 0 // text before this position does not belong to the marker

	for i, m := range markers {
		if i > 0 && m.at > markers[i-1].at {
			window = markers[i-1].at
		}

		if f := c.wordsBefore(m); f != nil {
			f.markers = append(f.markers, m)

			continue
		}

		if len(c.sentences) > 0 && m.at > 0 {
			window = max(window, c.sentences[c.sentenceAt(m.at-1)].from)
		}

		f := c.nearest(m, window)
		if f == nil {
			f = c.addName(lastWords(c.text[:m.at], window), m.at)
		}

		f.markers = append(f.markers, m)
	}
}

// nearest returns the figure between window and the marker that the marker belongs to, or nil.
func (c *checker) nearest(m *marker, window int) *figure {
	var nearest *figure

	end, _ := slices.BinarySearchFunc(c.figures, m.at+1, func(f *figure, at int) int { return f.from - at })

	for i, tries := end-1, 0; i >= 0 && c.figures[i].from >= window && tries < 8; i, tries = i-1, tries+1 {
		f := c.figures[i]
		if f.to > m.at {
			continue
		}

		if f.to == m.at && len(f.markers) == 0 {
			return f
		}

		if len(f.markers) == 0 && c.equals(f, m.result) {
			return f
		}

		if nearest == nil || (len(nearest.markers) > 0 && len(f.markers) == 0) || (!c.claims(nearest) && c.claims(f) && len(f.markers) == 0) {
			nearest = f
		}
	}

	return nearest
}

// wordsBefore makes a figure of the words before a marker if they are the text of its cell, else it returns nil.
func (c *checker) wordsBefore(m *marker) *figure {
	one := m.result.single
	if one == nil || one.number != nil || one.day.year != 0 || one.text == "" {
		return nil
	}

	before := c.text[:m.at]
	if len(before) < len(one.text) || !strings.EqualFold(before[len(before)-len(one.text):], one.text) {
		return nil
	}

	from := m.at - len(one.text)
	end, _ := slices.BinarySearchFunc(c.figures, m.at, func(f *figure, at int) int { return f.from - at })

	for end > 0 && c.figures[end-1].to > from {
		if c.figures[end-1].from < from || len(c.figures[end-1].markers) > 0 {
			return nil
		}

		end-- // digits within the name
		c.figures = slices.Delete(c.figures, end, end+1)
	}

	return c.addName(from, m.at)
}

func (c *checker) addName(from, to int) *figure {
	f := &figure{from: from, to: to, form: formName, inner: c.text[from:to]}
	at, _ := slices.BinarySearchFunc(c.figures, from, func(f *figure, at int) int { return f.from - at })
	c.figures = slices.Insert(c.figures, at, f)

	return f
}

// lastWords returns the position of the last three words, at least window.
func lastWords(text string, window int) int {
	at := len(strings.TrimRight(text, " "))
	for range 3 {
		space := strings.LastIndexByte(text[:at], ' ')
		if space < window {
			return min(window, len(text))
		}

		at = space
	}

	return at + 1
}
