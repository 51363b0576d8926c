package e2e

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/engine/document/paper"
)

// corpusPaper is a document of the corpus, with the rows that it must become and the page of each.
type corpusPaper struct {
	name    string
	content []byte
	rows    [][]any
	pages   []int
}

// language is how the documents of one language are written.
type language struct {
	fields, header                                   []string // of the definition, and as the documents name the columns
	number                                           func(cents int) string
	title, greeting, total, terms, invoice, customer string
}

func languages() map[string]language {
	return map[string]language{
		"english": {
			[]string{"item", "quantity", "unit_price"},
			[]string{"Item", "Quantity", "Unit price (EUR)"},
			func(cents int) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) },
			"Price list", "Dear customers,", "Total", "Payable within thirty days without deduction of any kind.", "Invoice no.", "Customer",
		},
		"german": {
			[]string{"artikel", "menge", "einzelpreis"},
			[]string{"Artikel", "Menge", "Einzelpreis [EUR]"},
			func(cents int) string { return fmt.Sprintf("%d,%02d", cents/100, cents%100) },
			"Preisliste für Händler", "Sehr geehrte Kunden,", "Summe", "Zahlbar innerhalb von dreißig Tagen ohne jeden Abzug.", "Rechnung Nr.", "Kunde",
		},
	}
}

// goods returns the rows of one document: those that it must become, and as it writes them.
func (l language) goods(from, count int) (rows [][]any, cells [][]string) {
	for n := from; n < from+count; n++ {
		rows = append(rows, []any{fmt.Sprintf("Größe %d", n), float64(n + 1), float64(1000+7*n) / 100})
		cells = append(cells, []string{fmt.Sprintf("Größe %d", n), strconv.Itoa(n + 1), l.number(1000 + 7*n)})
	}

	return rows, cells
}

// drawn returns the prints of a table. In one layout all cells begin where their names begin, in the other numbers end at the same place.
func (l language) drawn(top float64, right bool, cells [][]string) (prints []paper.Print, bottom float64) {
	table := append([][]string{l.header}, cells...)
	if !right {
		return paper.Table(top, 15, []float64{50, 260, 380}, table)
	}

	header, bottom := paper.Table(top, 22, []float64{70, 300, 420}, table[:1])
	for _, row := range cells {
		header = append(header, paper.Print{X: 70, Y: bottom, Size: 10, Text: row[0]}, paper.Right(345, bottom, row[1]), paper.Right(500, bottom, row[2]))
		bottom -= 18
	}

	return header, bottom
}

func ones(page, count int) []int { return slices.Repeat([]int{page}, count) }

// documents returns the corpus of a language: invoices, price lists and mails, each in two layouts.
func (l language) documents() (all []corpusPaper) {
	add := func(name string, content []byte, pages []int, rows ...[]any) {
		all = append(all, corpusPaper{name, content, rows, pages})
	}

	for n, right := range []bool{false, true} {
		rows, cells := l.goods(10*n, 3)

		totals := [][]string{{"", l.total, ""}}

		table, bottom := l.drawn(640, right, cells)
		invoice := slices.Concat(
			[]paper.Print{{X: 50, Y: 800, Size: 18, Text: l.invoice + " 2026-17"}, {X: 50, Y: 760, Size: 10, Text: l.customer}, {X: 300, Y: 760, Size: 10, Text: "Ada GmbH"}},
			table, []paper.Print{{X: 300, Y: bottom, Size: 10, Text: l.total}, paper.Right(500, bottom, l.number(99_00))}, paper.Lines(bottom-60, l.terms),
		)
		add(fmt.Sprintf("invoice %d", n), paper.PDF(invoice), ones(1, 3), rows...)

		add(fmt.Sprintf("invoice in Word %d", n), paper.Word(paper.Paragraph(l.invoice), paper.WordTable([][]string{{l.customer, "Ada GmbH"}, {"17", "2026"}}),
			paper.WordTable(slices.Concat([][]string{l.header}, cells, totals[:n])), paper.Paragraph(l.terms)), ones(1, 3), rows...)
	}

	rows, cells := l.goods(100, 40)
	first, _ := l.drawn(780, false, cells[:25])
	second, _ := l.drawn(780, true, cells[25:])
	add("price list of two pages", paper.PDF(append(paper.Lines(820, l.title), first...), append(second, paper.Lines(100, l.terms)...)), slices.Concat(ones(1, 25), ones(2, 15)), rows...)
	add("price list as a page", paper.HTML("<h1>"+l.title+"</h1><nav><a href=/>x</a></nav>"+paper.HTMLTable(append([][]string{l.header}, cells...))), ones(1, 40), rows...)
	add("price list in Markdown", []byte("# "+l.title+"\n\n"+paper.Markdown(append([][]string{l.header}, cells...))), ones(1, 40), rows...)

	rows, cells = l.goods(200, 4)
	table := string(paper.HTML("<p>" + l.greeting + paper.HTMLTable(append([][]string{l.header}, cells...)) + "<p>" + l.terms))
	add("mail", paper.Mail("x", paper.Part{Header: "Content-Type: text/html; charset=utf-8", Body: table}), ones(1, 4), rows...)

	page, _ := l.drawn(780, true, cells)
	add("mail with an attachment", paper.Mail("=?utf-8?q?Gr=C3=B6=C3=9Fe?=", paper.Part{Header: "Content-Type: text/plain; charset=utf-8", Body: l.greeting},
		paper.Part{
			Header: "Content-Type: application/pdf\r\nContent-Transfer-Encoding: base64\r\nContent-Disposition: attachment; filename=list.pdf",
			Body:   base64.StdEncoding.EncodeToString(paper.PDF(paper.Lines(800, l.title), page)),
		}), ones(3, 4), rows...)

	return all
}

// TestDocumentCorpus loads documents of three kinds in two layouts and two languages. Every table whose header names the fields of the definition
// becomes rows with their types, and every row knows its file, its row and its page.
func TestDocumentCorpus(t *testing.T) {
	t.Parallel()

	s := start(t)
	bearer := s.newKey().token("reader")

	for name, l := range languages() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()

			d := newFilled(t, s, "reader", bearer)
			definition := fmt.Sprintf(`{"dataDescription": "x", "schemaDefinition": {%q: "a", %q: "b", %q: "c"}}`, l.fields[0], l.fields[1], l.fields[2])
			require.Equal(t, http.StatusCreated, d.call(http.MethodPut, "/inferDefinition", definition).status)

			var (
				contents []string
				all      = l.documents()
			)

			for _, one := range all {
				contents = append(contents, string(one.content))
			}

			done := d.loaded(`"accept": ["all"]`, contents...)
			require.Zero(t, done.Progress.RowsSetAside)

			var found struct{ Data []map[string]any }

			answer := send(t, d.question("SELECT * FROM orders", "")) //nolint:unqueryvet // a statement of a user
			require.Equal(t, http.StatusOK, answer.status, answer.body)
			answer.json(t, &found)

			for n, one := range all {
				require.GreaterOrEqual(t, len(found.Data), len(one.rows), one.name)

				for i, row := range one.rows {
					metadata := map[string]any{"score": 1.0, "source": map[string]any{"file": fmt.Sprintf("file %d", n), "row": float64(i + 1), "page": float64(one.pages[i])}}
					require.Equal(t, map[string]any{l.fields[0]: row[0], l.fields[1]: row[1], l.fields[2]: row[2], "__metadata": metadata}, found.Data[i], one.name)
				}

				found.Data = found.Data[len(one.rows):]
			}

			require.Empty(t, found.Data)
		})
	}

	t.Run("one of several", func(t *testing.T) {
		t.Parallel()

		failed := newFilled(t, s, "reader", bearer).load("", string(paper.HTML(paper.HTMLTable([][]string{{"A", "B"}, {"1", "2"}}))), string(paper.HTML("x")))
		require.Equal(t, "failed", failed.Status)
		require.Contains(t, failed.Error.Message, "file 1: The document has no table")
	})

	t.Run("what needs a model", func(t *testing.T) {
		t.Parallel()

		d := newFilled(t, s, "reader", bearer)

		for content, contains := range map[string]string{
			string(paper.PDF(paper.Lines(800, "Dear Ada,", "the price of the bolts is 1.20 euros from now on."))):                         "language model",
			string(paper.HTML(paper.HTMLTable([][]string{{"A", "B"}, {"1", "2"}}) + paper.HTMLTable([][]string{{"C", "D"}, {"1", "2"}}))): "several tables",
		} {
			failed := d.load("", content)
			require.Equal(t, "failed", failed.Status)
			require.Contains(t, failed.Error.Message, contains)
		}
	})
}
