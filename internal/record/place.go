package record

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// folded is a text in which each sequence of blanks is one blank, with the number of the character that each byte belongs to.
type folded struct {
	text string
	at   []int // of each byte of text, and of its end
}

func fold(text string) folded {
	var (
		out   strings.Builder
		f     folded
		n     int
		space bool
	)

	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			space = true
		default:
			if space && out.Len() > 0 {
				out.WriteByte(' ')
				f.at = append(f.at, n-1)
			}

			space = false

			before := out.Len()
			out.WriteRune(r)

			for range out.Len() - before {
				f.at = append(f.at, n)
			}
		}

		n++
	}

	f.text = out.String()
	f.at = append(f.at, n)

	return f
}

// foldText folds a text without positions.
func foldText(text string) string { return strings.Join(strings.Fields(text), " ") }

// finder finds quotes in a chunk.
type finder struct {
	chunk Chunk
	parts []folded
}

func newFinder(c Chunk) *finder {
	f := &finder{chunk: c}
	for _, p := range c.Parts {
		f.parts = append(f.parts, fold(p.Text))
	}

	return f
}

// spot is an occurrence of a quote, and the lines that it stands on.
type spot struct{ place, line Place }

const maxSpots = 200

// find returns where a quote stands in the parts of a page, or of all pages if it is 0. A quote must not begin or end within a word.
func (f *finder) find(quote string, page int) (spots []spot) {
	quote = foldText(quote)
	if quote == "" {
		return nil
	}

	for n, part := range f.chunk.Parts {
		if page != 0 && part.Page != page {
			continue
		}

		text := f.parts[n].text

		for from := 0; len(spots) < maxSpots; {
			i := strings.Index(text[from:], quote)
			if i < 0 {
				break
			}

			i += from
			if end := i + len(quote); isWhole(text, i, end) {
				spots = append(spots, f.spot(n, i, end))
			}

			_, size := utf8.DecodeRuneInString(text[i:])
			from = i + size
		}
	}

	return spots
}

func (f *finder) spot(n, from, to int) spot {
	part, at := f.chunk.Parts[n], f.parts[n].at
	first, last := at[from], at[to-1]+1

	// The lines around it.
	begin, end := 0, utf8.RuneCountInString(part.Text)
	i := 0

	for _, r := range part.Text {
		if r == '\n' && i < first {
			begin = i + 1
		}

		if r == '\n' && i >= last {
			end = i

			break
		}

		i++
	}

	return spot{
		Place{part.Page, part.From + first, part.From + last},
		Place{part.Page, part.From + begin, part.From + end},
	}
}

// isWhole reports whether a part of a text neither begins nor ends within a word or a number.
func isWhole(text string, from, to int) bool {
	first, _ := utf8.DecodeRuneInString(text[from:to])
	last, _ := utf8.DecodeLastRuneInString(text[from:to])

	if before, size := utf8.DecodeLastRuneInString(text[:from]); size > 0 && isWord(before) && isWord(first) {
		return false
	}

	after, size := utf8.DecodeRuneInString(text[to:])

	return size == 0 || !isWord(after) || !isWord(last)
}

func isWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
