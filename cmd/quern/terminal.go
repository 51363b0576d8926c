package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
	"golang.org/x/text/width"
)

// terminal is the output of a command: a screen for people, or a file or pipe.
type terminal struct {
	file   *os.File
	screen bool
	colour bool
	width  int // of the screen behind a pager; 0 if the file itself is the screen
}

func newTerminal(file *os.File) terminal {
	screen := term.IsTerminal(int(file.Fd()))

	return terminal{file: file, screen: screen, colour: screen && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// columns returns the width of the screen; it is practically unlimited for a file or pipe.
func (t terminal) columns() int {
	if !t.screen {
		return 1 << 20
	}

	if t.width > 0 {
		return t.width
	}

	if columns, _, err := term.GetSize(int(t.file.Fd())); err == nil && columns > 0 {
		return columns
	}

	return 80
}

func (t terminal) printf(format string, args ...any) {
	_, _ = fmt.Fprintf(t.file, format, args...) // fails only if the reader has closed its end
}

// tellf prints a sentence; on a screen it does not break words.
func (t terminal) tellf(format string, args ...any) {
	t.printf("%s\n", wrap(fmt.Sprintf(format, args...), t.columns()))
}

const (
	bold = "1"
	dim  = "2"
	red  = "31"
	cyan = "36"
)

func (t terminal) style(code, text string) string {
	if !t.colour || text == "" {
		return text
	}

	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// clean makes foreign text harmless for a screen: a value must not control the reader's terminal. Files and pipes get
// the text unchanged.
func (t terminal) clean(text string) string {
	if !t.screen {
		return text
	}

	return strings.Map(func(r rune) rune {
		if r != '\n' && steers(r) {
			return '\uFFFD'
		}

		return r
	}, text)
}

func steers(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)
}

// cell returns a value on one line.
func cell(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return '↵'
		case r == '\t':
			return ' '
		case steers(r):
			return '\uFFFD'
		default:
			return r
		}
	}, text)
}

// textWidth returns how many columns a text takes on a screen.
func textWidth(text string) (columns int) {
	for _, r := range text {
		columns += runeWidth(r)
	}

	return columns
}

func runeWidth(r rune) int {
	switch kind := width.LookupRune(r).Kind(); {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case kind == width.EastAsianWide || kind == width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// cut shortens a text to a number of columns.
func cut(text string, columns int) string {
	if textWidth(text) <= columns {
		return text
	}

	taken := 0

	for i, r := range text {
		if taken += runeWidth(r); taken > columns-1 {
			return text[:i] + "…"
		}
	}

	return text
}

// wrap breaks a text at its spaces so that no line is wider than the given number of columns, if possible.
func wrap(text string, columns int) string {
	var lines []string

	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "|--") { // a row of a table is one line
			lines = append(lines, line)

			continue
		}

		current := ""

		for _, word := range strings.SplitAfter(line, " ") {
			if current != "" && textWidth(strings.TrimRight(current+word, " ")) > columns {
				lines = append(lines, strings.TrimRight(current, " "))
				current = ""
			}

			current += word
		}

		lines = append(lines, strings.TrimRight(current, " "))
	}

	return strings.Join(lines, "\n")
}

// capital returns a text with an upper-case first letter.
func capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)

	return strings.ToUpper(string(first)) + text[size:]
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(text, "\n", "\n"+by)
}

// waiting prints on a screen why nothing happens.
func (p *program) waiting(reason string, wait time.Duration) {
	if p.err.screen && wait >= time.Second {
		// Overwrites the line of progress, which is drawn again below.
		p.err.printf("\r%s\x1b[K\n", p.err.style(dim, fmt.Sprintf("%s; trying again in %s", reason, wait.Round(time.Second))))
	}
}

// size formats a number of bytes for people.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}

	value, unit := float64(n), 0
	for value >= 999.5 && unit < 5 {
		value /= 1000
		unit++
	}

	format := "%.0f %cB"
	if value < 10 {
		format = "%.1f %cB"
	}

	return fmt.Sprintf(format, value, " kMGTP"[unit])
}

// grouped formats a number with separators for people.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}

	return digits
}

// counted returns a number with its noun.
func counted(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}

	return grouped(n) + " " + many
}

// moment formats a time for people, in their own time zone.
func moment(t time.Time) string {
	return t.Local().Format("2006-01-02 15:04:05") //nolint:gosmopolitan // for the person at this terminal
}
