package documents

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
)

// Language is the language of a document. It decides how numbers and dates are written.
type Language string

// The languages.
const (
	English Language = "en"
	German  Language = "de"
)

// Field is a field of the definition of a kind.
type Field struct{ Name, Description, Type string }

// Kind is a kind of documents with the definition that guides the model.
type Kind struct {
	Name, About string
	Fields      []Field
	layouts     [layouts]layout
}

// layout is a way to write documents of a kind. size is 0 for the shortest documents.
type layout struct {
	format format
	write  func(s *sheet, size int)
}

const (
	layouts = 2 // the second one is held out
	sizes   = 3 // documents of each kind, layout and language
)

// Kinds returns all kinds.
func Kinds() []Kind {
	return []Kind{invoices(), contracts(), careers(), reports(), priceLists(), mails()}
}

// Document is a document with what it states.
type Document struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"`
	Language Language `json:"language"`
	HeldOut  bool     `json:"heldOut"`
	Records  []Record `json:"records"`

	Content []byte   `json:"-"`
	Written []string `json:"-"` // the text of each page, with lines and tabs between cells
	Pages   []string `json:"-"` // the same with one blank between words
}

// Record is a record of a document by the names of its fields. Fields that the document does not state are absent.
type Record map[string]Gold

// Gold is what a document states about a field.
type Gold struct {
	Value string `json:"value"` // as a row has it
	Said  string `json:"said"`  // as the document writes it
	Quote string `json:"quote"` // the words that state it
	Page  int    `json:"page"`

	shared bool   // it holds for all records
	line   [2]int // the line that states it: bytes of the text of the page
}

// Corpus returns all documents. The same seed always gives the same ones.
func Corpus(seed uint64) (all []*Document) {
	for k, kind := range Kinds() {
		for l, layout := range kind.layouts {
			for _, language := range []Language{English, German} {
				for size := range sizes {
					name := fmt.Sprintf("%s-%d-%s-%d.%s", kind.Name, l+1, language, size+1, layout.format)
					s := &sheet{
						kind: kind, language: language, format: layout.format, random: random(seed, name),
						number: 100*k + 10*l + size,
					}
					s.begin()
					layout.write(s, size)

					all = append(all, s.finish(name, l > 0))
				}
			}
		}
	}

	return all
}

// random returns numbers that are the same for the same text.
func random(seed uint64, text string) *rand.Rand {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // a hash does not fail

	return rand.New(rand.NewPCG(seed, sum.Sum64()))
}

// KindOf returns the kind of a document.
func KindOf(d *Document) Kind {
	for _, kind := range Kinds() {
		if kind.Name == d.Kind {
			return kind
		}
	}

	return Kind{}
}

// Group returns the name that the documents of one kind, layout and language have in common.
func (d *Document) Group() string {
	layout := "known"
	if d.HeldOut {
		layout = "held_out"
	}

	return d.Kind + "_" + layout + "_" + string(d.Language)
}
