package document

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// run is a text that is printed in one place. Positions increase to the right and upwards.
type run struct {
	left, right, bottom, top float64
	text                     string
}

// line is a line of a page: runs with gaps between them, from left to right.
type line struct {
	bottom, top float64
	cells       []run
}

func (l line) texts() []string {
	texts := make([]string, len(l.cells))
	for i, c := range l.cells {
		texts[i] = c.text
	}

	return texts
}

// linesOf arranges runs in lines. Runs that are less than gap apart are joined.
func linesOf(runs []run, gap float64) (lines []line) {
	slices.SortStableFunc(runs, func(a, b run) int { return cmp.Compare(b.bottom+b.top, a.bottom+a.top) })

	for _, r := range runs {
		last := len(lines) - 1
		if last >= 0 && overlap(lines[last].bottom, lines[last].top, r.bottom, r.top) >= min(lines[last].top-lines[last].bottom, r.top-r.bottom)/2 {
			l := &lines[last]
			l.bottom, l.top, l.cells = min(l.bottom, r.bottom), max(l.top, r.top), append(l.cells, r)
		} else {
			lines = append(lines, line{r.bottom, r.top, []run{r}})
		}
	}

	for n := range lines {
		cells := lines[n].cells
		slices.SortStableFunc(cells, func(a, b run) int { return cmp.Compare(a.left, b.left) })

		joined := cells[:1]

		for _, c := range cells[1:] {
			if last := &joined[len(joined)-1]; c.left-last.right < gap {
				last.text, last.right = last.text+" "+c.text, max(last.right, c.right)
			} else {
				joined = append(joined, c)
			}
		}

		lines[n].cells = joined
	}

	return lines
}

func overlap(a, b, c, d float64) float64 { return min(b, d) - max(a, c) }

// layOut adds the blocks of the lines to a page. em is the size of the letters.
func (r *Reader) layOut(page *composer, lines []line, em float64) {
	var paragraph []line

	flush := func() {
		kind := Paragraph
		if len(paragraph) == 1 && len(paragraph[0].cells) == 1 && paragraph[0].top-paragraph[0].bottom > 1.3*em {
			kind = Heading
		}

		var text strings.Builder
		for _, l := range paragraph {
			text.WriteString(strings.Join(l.texts(), "\t") + "\n")
		}

		page.add(kind, text.String())

		paragraph = nil
	}

	for i := 0; i < len(lines); {
		if rows, count := r.tableAt(lines[i:], em); count > 0 {
			flush()
			page.addTable(rows)

			i += count

			continue
		}

		if last := len(paragraph) - 1; last >= 0 && paragraph[last].bottom-lines[i].top > 0.8*em {
			flush()
		}

		paragraph = append(paragraph, lines[i])
		i++
	}

	flush()
}

const longestCell = 200 // bytes; longer texts are columns of prose

// tableAt returns the rows of a table that begins with the first line, and of how many lines it is made. There is none unless every row is
// certain: each cell belongs to one column, the first cell is there, and more than half of the cells are.
func (r *Reader) tableAt(lines []line, em float64) (rows [][]string, count int) {
	header := lines[0]
	if len(header.cells) < 2 || !r.mayHead(header.texts()) {
		return nil, 0
	}

	rows, pitches := [][]string{header.texts()}, []float64{}

	for n := 1; n < len(lines); n++ {
		pitch := lines[n-1].top - lines[n].top
		if pitch > 3.5*em || (len(pitches) > 1 && pitch > 1.8*median(pitches)) || r.heads(lines[n].texts()) {
			break
		}

		row, fits := columnsOf(header, lines[n])
		if !fits {
			break
		}

		pitches, rows = append(pitches, pitch), append(rows, row)
	}

	rows, counts := joinWrapped(rows, pitches)

	for last := len(rows) - 1; last > 0 && (rows[last][0] == "" || isSparse(rows[last])); last-- { // totals, or the text below the table
		rows = rows[:last]
	}

	if len(rows) < 2 {
		return nil, 0
	}

	for n, row := range rows {
		if count += counts[n]; row[0] == "" || isSparse(row) {
			return nil, 0
		}
	}

	return rows, count
}

// mayHead reports whether the cells may be names of columns.
func (r *Reader) mayHead(cells []string) bool {
	return r.heads(cells) || (len(r.fields) == 0 && isHeader(cells))
}

// heads reports whether the cells are names of fields.
func (r *Reader) heads(cells []string) bool {
	return len(r.fields) > 0 && r.matches(cells) >= (len(r.fields)+1)/2
}

// matches returns how many fields the cells name.
func (r *Reader) matches(cells []string) int {
	named := map[string]bool{}

	for _, cell := range cells {
		if name := fold(cell); r.fields[name] != "" {
			named[name] = true
		}
	}

	return len(named)
}

// isHeader reports whether the cells look like names of columns: short texts with letters, all different.
func isHeader(cells []string) bool {
	seen := map[string]bool{}

	for _, cell := range cells {
		name := fold(cell)
		if name == "" || seen[name] || len(cell) > 60 || strings.HasSuffix(cell, ":") || !strings.ContainsFunc(cell, unicode.IsLetter) || startsWithDigit(cell) {
			return false
		}

		seen[name] = true
	}

	return len(cells) > 1
}

func startsWithDigit(cell string) bool {
	return strings.IndexFunc(cell, unicode.IsDigit) == 0 && strings.IndexFunc(cell, unicode.IsLetter) > 4
}

// columnsOf distributes the cells of a line to the columns of the header. It reports false if that is not certain.
func columnsOf(header, l line) (row []string, fits bool) {
	row = make([]string, len(header.cells))

	for _, c := range l.cells {
		found, near, distance := -1, -1, 0.0

		for i, h := range header.cells {
			switch away := -overlap(h.left, h.right, c.left, c.right); {
			case away < 0 && found >= 0:
				return nil, false // it is below two names
			case away < 0:
				found = i
			case near < 0 || away < distance:
				near, distance = i, away
			}
		}

		if found < 0 {
			found = near
		}

		if row[found] != "" || len(c.text) > longestCell {
			return nil, false
		}

		row[found] = c.text
	}

	return row, true
}

// joinWrapped joins lines that continue the cells of the line above: their first cell is empty and they are nearer to it than other rows are.
// It returns of how many lines each row was made.
func joinWrapped(rows [][]string, pitches []float64) (joined [][]string, counts []int) {
	var usual []float64

	for n, pitch := range pitches {
		if rows[n+1][0] != "" {
			usual = append(usual, pitch)
		}
	}

	for n, row := range rows {
		if n < 2 || row[0] != "" || len(usual) == 0 || pitches[n-1] >= 0.8*median(usual) {
			joined, counts = append(joined, row), append(counts, 1)

			continue
		}

		above := joined[len(joined)-1]
		for i, text := range row {
			above[i] = strings.TrimSpace(above[i] + " " + text)
		}

		counts[len(counts)-1]++
	}

	return joined, counts
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))

	return sorted[len(sorted)/2]
}

// isSparse reports whether at most half of the cells of a row have a text.
func isSparse(row []string) bool {
	filled := 0

	for _, cell := range row {
		if cell != "" {
			filled++
		}
	}

	return 2*filled <= len(row)
}
