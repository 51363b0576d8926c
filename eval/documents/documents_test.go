package documents_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/eval/documents"
	"quern.dev/quern/internal/record"
)

const (
	seed    = 1
	every   = 12
	chunk   = 6000 // as internal/ingest has it
	overlap = 1200
)

// assemble lets the model read the pages of a document, and returns what the checks made of its answers.
func assemble(t *testing.T, m *documents.Model, d *documents.Document, pages []string) (all []documents.Found) {
	t.Helper()

	kinds := map[string]record.Kind{"varchar": record.Text, "double": record.Number, "bigint": record.Whole, "date": record.Date}
	kind := documents.KindOf(d)

	var fields []record.Field
	for _, f := range kind.Fields {
		fields = append(fields, record.Field{Name: f.Name, Description: f.Description, Kind: kinds[f.Type], Unit: record.UnitOf(f.Name, f.Description)})
	}

	var answered []record.Answered

	for _, c := range record.Split(pages, chunk, overlap) {
		answer, err := m.Answer(record.Prompt(kind.About, fields, c))
		require.NoError(t, err)

		answered = append(answered, record.Answered{Chunk: c, Answer: string(answer)})
	}

	made, err := record.Assemble(fields, record.Style{}, answered)
	require.NoError(t, err)

	for _, r := range made.Records {
		one := documents.Found{}

		for i, c := range r.Cells {
			if c.Said != "" {
				one[fields[i].Name] = documents.Cell{Value: c.Value, Quote: c.Quote, Flag: string(c.Flag), Page: c.Place.Page, From: c.Place.From, To: c.Place.To}
			}
		}

		all = append(all, one)
	}

	return all
}

// measure returns the figures of documents of at most so many records, with pages as they were written. spoil may change a field that was found.
func measure(t *testing.T, most int, spoil func(name string, c *documents.Cell), mistakes ...documents.Mistake) *documents.Figures {
	t.Helper()

	corpus, figures := documents.Corpus(seed), documents.NewFigures()
	m := documents.NewModel(corpus, seed, every, mistakes...)

	for _, d := range corpus {
		if len(d.Records) > most {
			continue
		}

		found := assemble(t, m, d, d.Written)

		for _, one := range found {
			for name, c := range one {
				if spoil != nil {
					spoil(name, &c)

					one[name] = c
				}
			}
		}

		figures.Add(m, d, found)
	}

	return figures
}

// TestDocumentCorpus checks the records of the corpus without a service: no mistake of the model gets through, and no right field is lost.
// `make eval SUITE=documents` does the same with the readers and a service.
func TestDocumentCorpus(t *testing.T) {
	t.Parallel()

	figures := measure(t, 100, nil, documents.Mistakes()...)
	require.NoError(t, figures.Print(t.Output()))
	require.NoError(t, figures.Check())
}

// TestCorpus checks that the corpus is what it claims to be.
func TestCorpus(t *testing.T) {
	t.Parallel()

	corpus := documents.Corpus(seed)
	again := documents.Corpus(seed)
	names, formats := map[string]bool{}, map[string]bool{}

	require.GreaterOrEqual(t, len(corpus), 60)

	for n, d := range corpus {
		require.False(t, names[d.Name], d.Name)
		require.Equal(t, d.Content, again[n].Content, d.Name)
		require.Greater(t, len(d.Records), 1, d.Name)

		names[d.Name] = true
		formats[d.Name[len(d.Name)-3:]] = true

		for _, r := range d.Records {
			for field, g := range r {
				require.Contains(t, d.Pages[g.Page-1], g.Quote, "%s %s", d.Name, field)
				require.Contains(t, g.Quote, g.Said, "%s %s", d.Name, field)
				require.NotEmpty(t, g.Value, "%s %s", d.Name, field)
			}
		}
	}

	require.Len(t, formats, 6)
}

// TestFiguresCanFail checks that the figures fall if a check is turned off, if a right field is flagged or changed, if a quote is changed, and
// if the model makes mistakes that no check can find.
func TestFiguresCanFail(t *testing.T) {
	t.Parallel()

	for name, test := range map[string]struct {
		mistakes []documents.Mistake
		spoil    func(name string, c *documents.Cell)
		want     string
	}{
		"a check is turned off": {
			documents.Mistakes(),
			func(_ string, c *documents.Cell) {
				if c.Flag == string(record.OtherRecord) {
					c.Flag, c.Value = "", "its value"
				}
			}, "planted mistakes are flagged, at least 95% must be",
		},
		"no check can find it": {[]documents.Mistake{documents.OtherField}, nil, "planted mistakes are flagged, at least 95% must be"},
		"a right field is flagged": {
			documents.Mistakes(),
			func(name string, c *documents.Cell) {
				if name == "notice_days" {
					c.Flag, c.Value = "type", ""
				}
			}, "fields that were claimed rightly are lost",
		},
		"a right field is changed": {
			documents.Mistakes(),
			func(name string, c *documents.Cell) {
				if name == "staff" && c.Value != "" {
					c.Value += "0"
				}
			}, "fields that were claimed rightly are lost",
		},
		"a quote is changed": {
			documents.Mistakes(),
			func(name string, c *documents.Cell) {
				if name == "duty" {
					c.Quote += "!"
				}
			}, "filled fields are not in the document",
		},
		"a quote stands elsewhere": {
			documents.Mistakes(),
			func(name string, c *documents.Cell) {
				if name == "duty" {
					c.From++
				}
			}, "filled fields are not in the document",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			require.ErrorContains(t, measure(t, 12, test.spoil, test.mistakes...).Check(), test.want)
		})
	}
}

// TestStrangeText checks that a page that was read differently from how it was written is told.
func TestStrangeText(t *testing.T) {
	t.Parallel()

	corpus, figures := documents.Corpus(seed)[:1], documents.NewFigures()
	m := documents.NewModel(corpus, seed, 0)
	found := assemble(t, m, corpus[0], []string{corpus[0].Written[0] + "more"})
	figures.Add(m, corpus[0], found)
	require.ErrorContains(t, figures.Check(), "read differently")
}
