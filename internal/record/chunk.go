package record

import (
	"strings"
	"unicode/utf8"
)

// Part is a part of a page: whole lines, unless a line is longer than a chunk.
type Part struct {
	Page int // from 1
	From int // characters of the page before it
	Text string
}

// Chunk is what a model sees at once: parts of one page or of consecutive pages.
type Chunk struct{ Parts []Part }

// Size returns the number of bytes of its text.
func (c Chunk) Size() (size int) {
	for _, p := range c.Parts {
		size += len(p.Text)
	}

	return size
}

// line is a line of a page with its end.
type line struct {
	page, from int
	text       string
}

// Split splits pages into chunks of at most bound bytes. Each chunk begins with the last lines of the one before, at most overlap bytes of
// them, so that what is at most that long is whole in one chunk. Blank lines at the ends of chunks do not count.
func Split(pages []string, bound, overlap int) []Chunk {
	var lines []line

	for n, text := range pages {
		at := 0

		for text := range strings.Lines(text) {
			for text != "" {
				piece := prefix(text, bound)
				lines = append(lines, line{n + 1, at, piece})
				at += utf8.RuneCountInString(piece)
				text = text[len(piece):]
			}
		}
	}

	return chunked(lines, bound, overlap)
}

// Halves splits a chunk into two that overlap. It returns nil if the chunk has only one line.
func (c Chunk) Halves(overlap int) []Chunk {
	size := c.Size()

	lines := make([]line, 0, size/bytesPerLine)

	for _, p := range c.Parts {
		at := p.From

		for text := range strings.Lines(p.Text) {
			lines = append(lines, line{p.Page, at, text})
			at += utf8.RuneCountInString(text)
		}
	}

	halves := chunked(lines, size/2+overlap, min(overlap, size/4))
	if len(halves) < 2 || halves[0].Size() >= size {
		return nil
	}

	return halves
}

const bytesPerLine = 40 // about

// prefix returns the first bytes of a text, at most so many, without a part of a character.
func prefix(text string, most int) string {
	if len(text) <= most {
		return text
	}

	for most > 1 && !utf8.RuneStart(text[most]) {
		most--
	}

	return text[:most]
}

func chunked(lines []line, bound, overlap int) (chunks []Chunk) {
	for from := 0; from < len(lines); {
		to, size := from, 0
		for to < len(lines) && (to == from || size+len(lines[to].text) <= bound) {
			size += len(lines[to].text)
			to++
		}

		if c := chunkOf(lines[from:to]); len(c.Parts) > 0 {
			chunks = append(chunks, c)
		}

		if to == len(lines) {
			break
		}

		back, repeated := to, 0
		for back-1 > from && repeated+len(lines[back-1].text) <= overlap {
			back--
			repeated += len(lines[back].text)
		}

		// The next chunk must have more than what is repeated.
		if repeated+len(lines[to].text) > bound {
			back = to
		}

		from = back
	}

	return chunks
}

// chunkOf joins lines to parts. It is empty if they are blank.
func chunkOf(lines []line) (c Chunk) {
	blank := true

	for _, l := range lines {
		if last := len(c.Parts) - 1; last >= 0 && c.Parts[last].Page == l.page {
			c.Parts[last].Text += l.text
		} else {
			c.Parts = append(c.Parts, Part{l.page, l.from, l.text})
		}

		blank = blank && strings.TrimSpace(l.text) == ""
	}

	if blank {
		return Chunk{}
	}

	return c
}
