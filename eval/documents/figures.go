package documents

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// Found is a record that the service made.
type Found map[string]Cell

// Cell is a field of such a record.
type Cell struct {
	Value          string // of the row, "" if it has none
	Quote, Flag    string
	Page, From, To int // of the quote: characters of the page
}

// tally counts the fields of some documents.
type tally struct {
	Documents, Records int
	Found              int // records
	Stated, Filled     int // fields: of the gold records, and of rows
	Right, Placed      int // filled fields with the right value; those of them whose quote is where the document states it
}

// Figures say what a service made of the answers of a model about the corpus.
type Figures struct {
	groups  map[string]*tally
	planted map[Mistake]int
	flagged map[Mistake]int
	missed  []Key // planted mistakes that are not flagged
	lost    []Key // fields that were claimed rightly and have no value or a wrong one
	claimed int   // fields that were claimed rightly
	filled  int   // fields of rows
	quoted  int   // those whose quote is in the document
	unquote []Key // the others
	strange []string
}

// NewFigures returns figures of nothing.
func NewFigures() *Figures {
	return &Figures{groups: map[string]*tally{}, planted: map[Mistake]int{}, flagged: map[Mistake]int{}}
}

// groupsOf returns the groups that a document counts for.
func groupsOf(d *Document) []string {
	layout := "layouts known"
	if d.HeldOut {
		layout = "layouts held out"
	}

	return []string{"all", layout, "kind " + d.Kind, "language " + string(d.Language)}
}

// Add counts what was found in a document.
func (f *Figures) Add(m *Model, d *Document, found []Found) {
	m.mu.Lock()
	defer m.mu.Unlock()

	read := m.read[d.Name]
	places := placesOf(found, read)
	matched := d.match(found, places)

	var one tally

	one.Documents, one.Records, one.Found = 1, len(d.Records), len(found)

	for n, r := range d.Records {
		one.Stated += len(r)

		var got Found
		if matched[n] >= 0 {
			got = found[matched[n]]
		}

		for _, field := range slices.Sorted(maps.Keys(r)) {
			g, c := r[field], got[field]
			isRight := c.Value != "" && isSame(g.Value, c.Value)

			if isRight {
				one.Right++

				if matched[n] >= 0 && places[matched[n]][field].states(g) {
					one.Placed++
				}
			}

			f.judge(m, Key{d.Name, n, field}, c, isRight)
		}
	}

	for n, got := range found {
		for _, field := range slices.Sorted(maps.Keys(got)) {
			c := got[field]
			if c.Value == "" {
				continue
			}

			one.Filled++
			f.filled++

			if c.isQuoted(d, read) {
				f.quoted++
			} else {
				f.unquote = append(f.unquote, Key{d.Name, n, field})
			}
		}
	}

	for _, name := range groupsOf(d) {
		if f.groups[name] == nil {
			f.groups[name] = &tally{}
		}

		f.groups[name].add(one)
	}

	f.strange = m.strange
}

func (t *tally) add(other tally) {
	t.Documents += other.Documents
	t.Records += other.Records
	t.Found += other.Found
	t.Stated += other.Stated
	t.Filled += other.Filled
	t.Right += other.Right
	t.Placed += other.Placed
}

// judge counts a planted mistake, or a right claim.
func (f *Figures) judge(m *Model, key Key, c Cell, isRight bool) {
	mistake, isPlanted := m.planted[key]

	switch {
	case isPlanted:
		f.planted[mistake]++

		if c.Flag != "" {
			f.flagged[mistake]++
		} else {
			f.missed = append(f.missed, key)
		}
	case m.claimed[key]:
		f.claimed++

		if c.Flag != "" || !isRight {
			f.lost = append(f.lost, key)
		}
	}
}

// match returns for each record the one of those that were found with most fields at its places, -1 if there is none.
func (d *Document) match(found []Found, places []map[string]place) []int {
	type pair struct{ record, found, score int }

	var pairs []pair

	for n, r := range d.Records {
		for i, got := range found {
			score := 0

			for field, g := range r {
				c := got[field]
				if !g.shared && places[i][field].states(g) {
					score += 3
				}

				if !g.shared && c.Value != "" && isSame(g.Value, c.Value) {
					score++
				}
			}

			if score > 0 {
				pairs = append(pairs, pair{n, i, score})
			}
		}
	}

	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(b.score, a.score) })

	matched, taken := slices.Repeat([]int{-1}, len(d.Records)), map[int]bool{}

	for _, p := range pairs {
		if matched[p.record] < 0 && !taken[p.found] {
			matched[p.record] = p.found
			taken[p.found] = true
		}
	}

	return matched
}

// place is where a quote stands: characters of the text of a page in which there is one blank between words.
type place struct {
	page, from int
	quote      string
}

func placesOf(found []Found, read []string) (all []map[string]place) {
	for _, got := range found {
		places := map[string]place{}

		for field, c := range got {
			if c.Page < 1 || c.Page > len(read) {
				continue
			}

			if before, quote, ok := cut(read[c.Page-1], c.From, c.To); ok {
				places[field] = place{c.Page, len(folded(before+"x")) - 1, quote}
			}
		}

		all = append(all, places)
	}

	return all
}

// states reports whether a place is within the line that states a field, and has its words.
func (p place) states(g Gold) bool {
	return p.page == g.Page && g.line[0] <= p.from && p.from+len(p.quote) <= g.line[1] && strings.Contains(p.quote, g.Said)
}

// isQuoted reports whether the document as it was written has the quote on its page, and the text that was read has it at its place.
func (c Cell) isQuoted(d *Document, read []string) bool {
	if c.Quote == "" || c.Page < 1 || c.Page > len(d.Pages) || c.Page > len(read) {
		return false
	}

	_, quote, ok := cut(read[c.Page-1], c.From, c.To)

	return ok && quote == folded(c.Quote) && strings.Contains(d.Pages[c.Page-1], quote)
}

// cut returns the text before some characters, and these without superfluous blanks.
func cut(text string, from, to int) (before, quote string, ok bool) {
	runes := []rune(text)
	if from < 0 || to > len(runes) || from >= to {
		return "", "", false
	}

	return string(runes[:from]), folded(string(runes[from:to])), utf8.ValidString(text)
}

// isSame reports whether two values are equal: as numbers, or as texts without superfluous blanks.
func isSame(a, b string) bool {
	one, err := strconv.ParseFloat(a, 64)
	other, failed := strconv.ParseFloat(b, 64)

	if err == nil && failed == nil {
		return one == other
	}

	return folded(a) == folded(b)
}

// Print writes the figures.
func (f *Figures) Print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tdocuments\trecords\tfound\tfields\tprecision\trecall\tplace right\t")

	for _, name := range slices.Sorted(maps.Keys(f.groups)) {
		t := f.groups[name]
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t\n", name, t.Documents, t.Records, t.Found, t.Stated, share(t.Right, t.Filled), share(t.Right, t.Stated), share(t.Placed, t.Right))
	}

	fmt.Fprintln(table, "\t\t\t\t\t\t\t\t")
	fmt.Fprintln(table, "mistake of the model\tplanted\tflagged\t\t\t\t\t\t")

	for _, kind := range slices.Sorted(maps.Keys(f.planted)) {
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t\t\t\t\t\n", kind, f.planted[kind], f.flagged[kind], share(f.flagged[kind], f.planted[kind]))
	}

	if err := table.Flush(); err != nil {
		return err
	}

	planted, flagged := f.mistakes()
	all := f.groups["all"]
	_, err := fmt.Fprintf(to, "right fields lost: %d of %d; quotes found in the document: %d of %d\n"+
		"eval documents n=%d records=%d precision=%s recall=%s place=%s planted=%d flagged=%s lost=%d quotes=%s\n",
		len(f.lost), f.claimed, f.quoted, f.filled, all.Documents, all.Records, share(all.Right, all.Filled), share(all.Right, all.Stated), share(all.Placed, all.Right),
		planted, share(flagged, planted), len(f.lost), share(f.quoted, f.filled))

	return err
}

func share(part, whole int) string {
	if whole == 0 {
		return "-"
	}

	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

func (f *Figures) mistakes() (planted, flagged int) {
	for kind, count := range f.planted {
		planted, flagged = planted+count, flagged+f.flagged[kind]
	}

	return planted, flagged
}

const (
	leastFlagged = 0.95 // of the planted mistakes
	shownKeys    = 12
)

// Check returns an error if the figures are worse than what is demanded.
func (f *Figures) Check() error {
	var failures []error

	planted, flagged := f.mistakes()
	if planted == 0 || float64(flagged) < leastFlagged*float64(planted) {
		failures = append(failures, fmt.Errorf("%d of %d planted mistakes are flagged, at least 95%% must be; not flagged: %v", flagged, planted, f.missed[:min(len(f.missed), shownKeys)]))
	}

	if len(f.lost) > 0 {
		failures = append(failures, fmt.Errorf("%d fields that were claimed rightly are lost: %v", len(f.lost), f.lost[:min(len(f.lost), shownKeys)]))
	}

	if f.filled == 0 || f.quoted < f.filled {
		failures = append(failures, fmt.Errorf("the quotes of %d of %d filled fields are not in the document: %v", f.filled-f.quoted, f.filled, f.unquote[:min(len(f.unquote), shownKeys)]))
	}

	if len(f.strange) > 0 {
		failures = append(failures, fmt.Errorf("%d parts of pages were read differently from how they were written: %.300q", len(f.strange), f.strange[0]))
	}

	return errors.Join(failures...)
}
