package documents

import (
	"encoding/json"
	"errors"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Key names a field of a record of a document.
type Key struct {
	Document string
	Record   int
	Field    string
}

// Model is a scripted model. It answers a chunk of a document of the corpus with the records that stand in it, and makes known mistakes.
type Model struct {
	corpus   []*Document
	seed     uint64
	mistakes []Mistake
	every    int // how many claims there are for each mistake

	mu      sync.Mutex
	planted map[Key]Mistake
	claimed map[Key]bool
	read    map[string][]string // the text of the pages of each document, as the service sent it
	strange []string            // texts that no document has
}

// NewModel returns a model that makes a mistake in one of every `every` claims. With 0 it makes no mistakes.
func NewModel(corpus []*Document, seed uint64, every int, mistakes ...Mistake) *Model {
	return &Model{corpus: corpus, seed: seed, every: every, mistakes: mistakes, planted: map[Key]Mistake{}, claimed: map[Key]bool{}, read: map[string][]string{}}
}

// Pages returns what the service sent to the model of a document: the text of each page.
func (m *Model) Pages(document string) []string {
	m.mu.Lock()
	defer m.mu.Unlock()

	return m.read[document]
}

// part is the part of a page that a message contains: the bytes between from and to of the page's text.
type part struct {
	page     int
	text     string
	from, to int
}

// claim is what the model says about a field.
type claim struct {
	Value string `json:"value"`
	Quote string `json:"quote"`
	Page  int    `json:"page"`
}

var mark = regexp.MustCompile(`(?m)^The text is between lines that begin with (=+(?:\d+=+)?)\.`)

// partsOf returns the parts of pages of a message.
func partsOf(message string) (parts []part, err error) {
	found := mark.FindStringSubmatchIndex(message)
	if found == nil {
		return nil, errors.New("the message has no text of a document")
	}

	sign := message[found[2]:found[3]]
	_, text, _ := strings.Cut(message[found[1]:], "\n")

	for line := range strings.Lines(text) {
		if rest, begins := strings.CutPrefix(line, sign+" "); begins {
			if strings.TrimSpace(rest) == "end" {
				return parts, nil
			}

			page, err := strconv.Atoi(strings.TrimSpace(strings.TrimPrefix(rest, "page ")))
			if err != nil {
				return nil, err
			}

			parts = append(parts, part{page: page})

			continue
		}

		parts[len(parts)-1].text += line
	}

	return nil, errors.New("the text of the message does not end")
}

// Answer returns the records that stand in the text of a message.
func (m *Model) Answer(message string) ([]byte, error) {
	parts, err := partsOf(message)
	if err != nil {
		return nil, err
	}

	m.mu.Lock()
	defer m.mu.Unlock()

	records := []map[string]*claim{}

	document := m.find(parts)
	if document == nil {
		for _, p := range parts {
			m.strange = append(m.strange, p.text)
		}
	} else {
		m.keep(document, parts)

		records = m.records(document, parts)
	}

	return json.Marshal(map[string]any{"records": records})
}

// find returns the document that has the parts, and sets where they are.
func (m *Model) find(parts []part) *Document {
	for _, d := range m.corpus {
		if d.has(parts) {
			return d
		}
	}

	return nil
}

func (d *Document) has(parts []part) bool {
	for n := range parts {
		p := &parts[n]
		if p.page > len(d.Pages) {
			return false
		}

		text := folded(p.text)

		at := strings.Index(d.Pages[p.page-1], text)
		if at < 0 {
			return false
		}

		p.from, p.to = at, at+len(text)
	}

	return true
}

func folded(text string) string { return strings.Join(strings.Fields(text), " ") }

// keep adds the parts to the pages that were read. A part can begin with the end of the one before.
func (m *Model) keep(d *Document, parts []part) {
	pages := m.read[d.Name]
	for len(pages) < len(d.Pages) {
		pages = append(pages, "")
	}

	for _, p := range parts {
		known, text := pages[p.page-1], strings.TrimSuffix(p.text, "\n")

		overlap := min(len(known), len(text))
		for overlap > 0 && !strings.HasSuffix(known, text[:overlap]) {
			overlap--
		}

		if !strings.Contains(known, text) {
			pages[p.page-1] += text[overlap:]
		}
	}

	m.read[d.Name] = pages
}

// records returns the claims about the records in the parts. A record is in the parts if they have a field that belongs to this record alone.
func (m *Model) records(d *Document, parts []part) []map[string]*claim {
	list := []map[string]*claim{}

	for n, r := range d.Records {
		own := false
		for _, g := range r {
			own = own || (!g.shared && g.isIn(parts))
		}

		if !own {
			continue
		}

		one := map[string]*claim{}

		for field, g := range r {
			if g.isIn(parts) {
				one[field] = m.claim(d, n, field, parts)
				m.claimed[Key{d.Name, n, field}] = true
			}
		}

		list = append(list, one)
	}

	return list
}

// isIn reports whether the line that states a field stands in the parts.
func (g Gold) isIn(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.page == g.Page && p.from <= g.line[0] && g.line[1] <= p.to })
}

// claim returns what the model says about a field. Half of the documents are quoted by whole lines.
func (m *Model) claim(d *Document, record int, field string, parts []part) *claim {
	g := d.Records[record][field]
	made := m.quote(d, g)

	random := m.random(d, record, field)
	if m.every == 0 || random.IntN(m.every) > 0 {
		return &made
	}

	first := random.IntN(len(m.mistakes))

	for n := range m.mistakes {
		p := plant{model: m, document: d, record: record, field: field, gold: g, parts: parts, random: random}

		kind := m.mistakes[(first+n)%len(m.mistakes)]
		if wrong, ok := p.mistake(kind, made); ok {
			m.planted[Key{d.Name, record, field}] = kind

			return &wrong
		}
	}

	return &made
}

func (m *Model) quote(d *Document, g Gold) claim {
	quote := g.Quote
	if line := d.line(g); m.random(d, 0, "").IntN(2) == 0 && len(line) <= longestQuote {
		quote = line
	}

	return claim{g.Said, quote, g.Page}
}

const longestQuote = 240 // bytes of a line that is quoted as a whole

func (d *Document) line(g Gold) string { return d.Pages[g.Page-1][g.line[0]:g.line[1]] }

// random returns the same numbers for a field in each chunk and each run.
func (m *Model) random(d *Document, record int, field string) *rand.Rand {
	return random(m.seed, d.Name+"\x00"+strconv.Itoa(record)+"\x00"+field)
}
