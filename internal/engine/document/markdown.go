package document

import (
	"regexp"
	"strings"
	"unicode/utf8"
)

// readMarkdown reads a text: its headings, tables and paragraphs. Tables whose columns are only aligned are found too.
func (r *reading) readMarkdown(text string) error {
	page := &composer{}
	r.compose(page, text)

	return r.add(page)
}

// compose adds the blocks of a text to a page.
func (r *reading) compose(page *composer, text string) {
	var (
		lines = strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, mark), "\r\n", "\n"), "\n")
		plain []string // lines that are neither headings nor tables
		fence string
	)

	flush := func() {
		r.layOut(page, textLines(plain), 1)

		plain = nil
	}

	for i := 0; i < len(lines); i++ {
		line := lines[i]

		switch {
		case fence != "":
			if strings.HasPrefix(strings.TrimSpace(line), fence) {
				fence = ""
			}

			plain = append(plain, line)
		case strings.HasPrefix(strings.TrimSpace(line), "```"), strings.HasPrefix(strings.TrimSpace(line), "~~~"):
			fence = strings.TrimSpace(line)[:3]

			plain = append(plain, line)
		case heading.MatchString(line):
			flush()
			page.add(Heading, strings.Trim(line, "# \t"))
		case i+1 < len(lines) && strings.Contains(line, "|") && gridLine.MatchString(lines[i+1]) && len(markdownCells(line)) == len(markdownCells(lines[i+1])):
			flush()

			rows := [][]string{markdownCells(line)}
			for i += 2; i < len(lines) && strings.Contains(lines[i], "|"); i++ {
				rows = append(rows, markdownCells(lines[i]))
			}

			i--

			page.addTable(rows)
		default:
			plain = append(plain, line)
		}
	}

	flush()
}

var (
	heading = regexp.MustCompile(`^ {0,3}#{1,6}[ \t]`)
	linked  = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
)

// markdownCells returns the cells of a row of a table, without styles and the addresses of links.
func markdownCells(line string) []string {
	line = strings.TrimSpace(line)
	line = strings.TrimPrefix(line, "|")

	if strings.HasSuffix(line, "|") && !strings.HasSuffix(line, `\|`) {
		line = line[:len(line)-1]
	}

	var (
		cells []string
		from  int
	)

	for i := range len(line) {
		if line[i] == '|' && (i == 0 || line[i-1] != '\\') {
			cells = append(cells, line[from:i])
			from = i + 1
		}
	}

	cells = append(cells, line[from:])
	unstyled := strings.NewReplacer("**", "", "__", "", "`", "", `\|`, "|")

	for i, cell := range cells {
		cells[i] = strings.TrimSpace(unstyled.Replace(linked.ReplaceAllString(cell, "$1")))
	}

	return cells
}

// textLines returns the lines of a text as if they were printed with letters of the same width. Cells are separated by tabs or by at least
// two blanks.
func textLines(texts []string) []line {
	const tab = 1000 // wider than any cell: what is between tabs is in columns by its number

	lines := make([]line, 0, len(texts))

	for n, text := range texts {
		if strings.TrimSpace(text) == "" {
			continue
		}

		one := line{top: -float64(n), bottom: -float64(n) - 1}
		at := 0.0

		for i, part := range strings.Split(strings.TrimRight(text, " \t\r"), "\t") {
			if i > 0 {
				at = float64(i * tab)
			}

			one.cells = append(one.cells, spacedCells(part, at)...)
		}

		lines = append(lines, one)
	}

	return lines
}

var spaces = regexp.MustCompile(` {2,}`)

func spacedCells(text string, at float64) (cells []run) {
	from := 0

	put := func(to int) {
		if part := text[from:to]; strings.TrimSpace(part) != "" {
			left := at + float64(utf8.RuneCountInString(text[:from]))
			cells = append(cells, run{left: left, right: left + float64(utf8.RuneCountInString(part)), text: strings.TrimSpace(part)})
		}
	}

	for _, gap := range spaces.FindAllStringIndex(text, -1) {
		put(gap[0])

		from = gap[1]
	}

	put(len(text))

	return cells
}
