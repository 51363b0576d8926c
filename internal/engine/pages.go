package engine

import (
	"bufio"
	"encoding/json"
	"os"
	"unicode/utf8"

	"quern.dev/quern/internal/fault"
)

// MaxPagesText is the largest text of a document, in bytes.
const MaxPagesText = 64 << 20

// Pages writes the text of the pages of a document to a file. Take retrieves it by the name output, and ReadPages reads it.
//
// Faults: *FileError for problems with the file, also if it is no document.
func (s *Session) Pages(source Source, encoding string, bounds Bounds, output string) (Paged, error) {
	answer, err := s.ask(Request{Pages: &PagesRequest{Source: source, Encoding: encoding, Bounds: bounds, Output: output}}, s.Progress)

	switch {
	case err != nil:
		return Paged{}, err
	case answer.Paged == nil || answer.Paged.Pages < 1 || answer.Paged.Pages > MaxPages || len(answer.Paged.Doubts) > 1:
		return Paged{}, s.nonsense("no pages")
	}

	for i := range answer.Paged.Doubts {
		answer.Paged.Doubts[i].clean()
	}

	return *answer.Paged, nil
}

// ReadPages reads the pages that a sealed process wrote. The file is not trusted.
func ReadPages(path string, count int) (pages []string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	decoder, left := json.NewDecoder(bufio.NewReaderSize(file, 1<<16)), MaxPagesText

	for decoder.More() {
		var page string
		if err := decoder.Decode(&page); err != nil {
			return nil, fault.Wrap(err, fault.Internal, "The file could not be read.")
		}

		if left -= len(page); left < 0 || len(pages) == count || !utf8.ValidString(page) {
			break
		}

		pages = append(pages, page)
	}

	if len(pages) != count || left < 0 || decoder.More() {
		return nil, fault.New(fault.Internal, "The file could not be read.")
	}

	return pages, nil
}
