package document

import (
	"archive/zip"
	"bytes"
	"io"
	"regexp"
	"strings"
)

// Kind is a kind of documents, as messages name it.
type Kind string

// The kinds of documents.
const (
	PDF      Kind = "PDF document"
	Word     Kind = "Word document"
	HTML     Kind = "HTML document"
	Markdown Kind = "Markdown document"
	Mail     Kind = "mail"
)

const mark = "\xef\xbb\xbf" // the byte order mark of UTF-8

// Detect returns the kind of a document from its first bytes; empty if it is none, or one that only its text shows.
func Detect(head []byte) Kind {
	head = bytes.TrimLeft(bytes.TrimPrefix(head, []byte(mark)), " \t\r\n")

	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return PDF
	case isHTML(head):
		return HTML
	case isMail(head):
		return Mail
	default:
		return ""
	}
}

func isHTML(head []byte) bool {
	for {
		switch {
		case bytes.HasPrefix(head, []byte("<!--")):
			_, rest, found := bytes.Cut(head, []byte("-->"))
			if !found {
				return false
			}

			head = bytes.TrimLeft(rest, " \t\r\n")
		case bytes.HasPrefix(head, []byte("<?xml")):
			_, rest, found := bytes.Cut(head, []byte("?>"))
			if !found {
				return false
			}

			head = bytes.TrimLeft(rest, " \t\r\n")
		default:
			start := strings.ToLower(string(head[:min(len(head), 15)]))

			return strings.HasPrefix(start, "<!doctype html") || strings.HasPrefix(start, "<html>") || strings.HasPrefix(start, "<html ") || strings.HasPrefix(start, "<html\n")
		}
	}
}

var (
	headerLine = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*:( |\t|$)`)
	headerName = regexp.MustCompile(`(?im)^(from|to|date|subject|message-id|mime-version|received|return-path|content-type):`)
)

const leastHeaders = 3

// isMail reports whether a text begins with the header of a mail: only lines that are fields, and at least three that mails have.
func isMail(head []byte) bool {
	lines := 0

	for line := range bytes.Lines(head) {
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}

		isFolded := lines > 0 && (line[0] == ' ' || line[0] == '\t')
		if !isFolded && !headerLine.Match(line) {
			return false
		}

		lines++
	}

	end := len(head)

	for _, blank := range []string{"\n\n", "\r\n\r\n"} {
		if at := bytes.Index(head, []byte(blank)); at >= 0 {
			end = min(end, at)
		}
	}

	names := map[string]bool{}
	for _, name := range headerName.FindAll(head[:end], -1) {
		names[strings.ToLower(string(name))] = true
	}

	return len(names) >= leastHeaders
}

// gridLine is the line below the header of a table in Markdown.
var gridLine = regexp.MustCompile(`^ {0,3}\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)+\|?[ \t]*$`)

// IsMarkdown reports whether a text in UTF-8 has a table in Markdown: a line of names, and below it a line of dashes for each.
func IsMarkdown(head []byte) bool {
	before := ""

	for line := range strings.Lines(string(bytes.TrimPrefix(head, []byte(mark)))) {
		if line = strings.TrimRight(line, "\r\n"); strings.Contains(line, "|") && gridLine.MatchString(line) && len(markdownCells(line)) == len(markdownCells(before)) {
			return true
		}

		before = line
	}

	return false
}

// damagedHead is how much of a damaged archive is searched for the name of a part.
const damagedHead = 1 << 20

// IsWord reports whether a zip archive is a Word document, also one that is damaged.
func IsWord(file io.ReaderAt, size int64) bool {
	archive, err := zip.NewReader(file, size)
	if err != nil {
		// The names of the parts are also before their contents.
		head := make([]byte, min(size, damagedHead))
		n, _ := file.ReadAt(head, 0)

		return bytes.Contains(head[:n], []byte(wordPart))
	}

	for _, part := range archive.File[:min(len(archive.File), maxParts)] {
		if strings.EqualFold(strings.TrimPrefix(part.Name, "/"), wordPart) {
			return true
		}
	}

	return false
}
