package planner_test

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"quern.dev/quern/internal/lexicon"
	"quern.dev/quern/internal/planner"
)

// strange returns words that mean nothing in the worlds of the test.
func strange() []string {
	return strings.Fields(`giraffe umbrella volcano sonnet anchor bishop dragon pollen comet trumpet glacier hermit
	juggled whispered melted yodelled borrowed complained promised forgot
	angry purple hollow ancient loyal refundable urgent fragile seasonal domestic likely suspicious
	quickly elsewhere twice rarely roughly barely nearly instead`)
}

// TestCover checks on answered questions that no word is dropped. A word that means nothing in the data, put anywhere,
// must keep the question from being answered. Without a word, or with another value, number, column, dataset or
// operator in its place, the question must not get the same SQL, with the exceptions of sameWithout.
func TestCover(t *testing.T) {
	t.Parallel()
	require.Len(t, strange(), 40)

	var (
		group  sync.WaitGroup
		mutex  sync.Mutex
		counts tally
		faults []string
	)

	for _, set := range questionSets(t) {
		group.Go(func() {
			one, found := set.check()

			mutex.Lock()
			defer mutex.Unlock()

			counts.add(one)

			faults = append(faults, found...)
		})
	}

	group.Wait()
	slices.Sort(faults)
	t.Logf("%d questions (%d from question sets), %d answered; %d with a strange word, %d without a word, %d with another word",
		counts.questions, counts.real, counts.answered, counts.inserted, counts.deleted, counts.replaced)

	if len(faults) > 0 {
		t.Errorf("%d faults:\n%s", len(faults), strings.Join(faults, "\n"))
	}

	require.GreaterOrEqual(t, counts.questions, 2000)
	require.GreaterOrEqual(t, counts.real, 1000)
	require.GreaterOrEqual(t, counts.answered, 1000)
}

type tally struct{ questions, real, answered, inserted, deleted, replaced int }

func (t *tally) add(o tally) {
	t.questions += o.questions
	t.real += o.real
	t.answered += o.answered
	t.inserted += o.inserted
	t.deleted += o.deleted
	t.replaced += o.replaced
}

// questionSet is questions about a world.
type questionSet struct {
	*testWorld

	isReal    bool // from a question set of the repository
	questions []string
}

func (s *questionSet) check() (counts tally, faults []string) {
	for i, question := range s.questions {
		counts.questions++

		if s.isReal {
			counts.real++
		}

		plan := s.ask(question)
		if plan.Outcome != planner.Answer {
			continue
		}

		counts.answered++

		one := checked{set: s, question: question, plan: plan, words: slices.Collect(lexicon.KeyWords(question))}
		one.insert(i)
		one.delete()
		one.replace()

		counts.add(one.counts)

		faults = append(faults, one.faults...)
	}

	return counts, faults
}

// checked is an answered question.
type checked struct {
	set      *questionSet
	question string
	plan     planner.Plan
	words    []lexicon.Word
	counts   tally
	faults   []string
}

func (c *checked) fault(kind, other string) {
	c.faults = append(c.faults, kind+": "+c.set.name+": "+c.question+" → "+other)
}

// insert puts words without meaning at three positions.
func (c *checked) insert(number int) {
	strange := strange()

	for _, at := range []int{0, len(c.words) / 2, len(c.words)} {
		for k := range 3 {
			where := len(c.question)
			if at < len(c.words) {
				where = c.words[at].Start
			}

			text := strings.TrimRight(c.question[:where], "?. ") + " " + strange[(3*number+k)%len(strange)] + " " + c.question[where:]
			c.counts.inserted++

			if c.set.ask(text).Outcome == planner.Answer {
				c.fault("inserted", text)
			}
		}
	}
}

// sql returns the SQL of a question that is answered, otherwise nothing.
func (c *checked) sql(question string) string {
	if plan := c.set.ask(question); plan.Outcome == planner.Answer {
		return plan.Candidates[0].SQL
	}

	return ""
}

// delete leaves out each word that is not in the closed lists.
func (c *checked) delete() {
	for _, w := range c.words {
		word := strings.ToLower(c.question[w.Start:w.End])
		if planner.IsFunction(word) || planner.IsLight(lexicon.Stem(word)) || word == "s" {
			continue
		}

		text := c.question[:w.Start] + c.question[w.End:]
		c.counts.deleted++

		if c.sql(text) == c.plan.Candidates[0].SQL && !c.sameWithout(w) {
			c.fault("deleted "+c.explained(w).As+" "+word, text)
		}
	}
}
