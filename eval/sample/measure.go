package sample

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Verdict is the result of a check for a part of a plain answer.
type Verdict struct {
	From, To int
	Verified bool
}

// Count counts the results of a class in a format. For correct claims, Found counts false alarms.
type Count struct {
	Answers, Claims, Found int
	Touched                int // answers in which something was found
}

// Figures measures the quality of a check.
type Figures struct {
	Wrong  map[Class]map[Format]*Count
	Right  map[Format]*Count // correct claims in answers without mistakes
	Around map[Format]*Count // correct claims in answers with a mistake
}

// Measure makes one answer of each class and format for each seed, and counts what the check finds. It calls wrong for
// each miss and each false alarm.
func Measure(tables []Table, from, to uint64, check func(Sample) []Verdict, wrong func(class Class, s Sample, c Claim)) Figures {
	f := Figures{Wrong: map[Class]map[Format]*Count{}, Right: map[Format]*Count{}, Around: map[Format]*Count{}}

	for _, class := range Classes() {
		f.Wrong[class] = map[Format]*Count{}
	}

	for _, in := range Formats() {
		f.Right[in], f.Around[in] = &Count{}, &Count{}

		for _, class := range append(Classes(), True) {
			if class != True {
				f.Wrong[class][in] = &Count{}
			}

			for seed := from; seed < to; seed++ {
				if s, made := New(seed, tables, in, class); made {
					f.add(class, in, s, check(s), wrong)
				}
			}
		}
	}

	return f
}

func (f Figures) add(class Class, in Format, s Sample, verdicts []Verdict, wrong func(Class, Sample, Claim)) {
	right, bad := f.Around[in], f.Wrong[class][in]
	if class == True {
		right, bad = f.Right[in], &Count{}
	}

	alarms, found := right.Found, bad.Found

	for _, claim := range s.Claims {
		count, doubted := right, false
		if claim.Wrong {
			count = bad
		}

		for i, v := range verdicts {
			if v.From < claim.To && v.To > claim.From {
				doubted = doubted || !v.Verified
				verdicts[i].Verified = true // mark the verdict as assigned to a claim
			}
		}

		count.Claims++

		if doubted {
			count.Found++
		}

		if doubted != claim.Wrong {
			wrong(class, s, claim)
		}
	}

	for _, v := range verdicts {
		if !v.Verified {
			right.Claims++
			right.Found++

			wrong(class, s, Claim{From: v.From, To: v.To})
		}
	}

	right.answered(alarms)
	bad.answered(found)
}

func (c *Count) answered(before int) {
	c.Answers++

	if c.Found > before {
		c.Touched++
	}
}

// Found returns the fraction of wrong claims that were found, and the number of wrong claims.
func (f Figures) Found() (part float64, of int) {
	var all Count
	for _, formats := range f.Wrong {
		for _, count := range formats {
			all.Claims, all.Found = all.Claims+count.Claims, all.Found+count.Found
		}
	}

	return all.part(), all.Claims
}

// FalseAlarms returns the fractions of claims and of answers that were doubted, for answers without mistakes.
func (f Figures) FalseAlarms() (claims, answers float64) {
	var all Count
	for _, count := range f.Right {
		all.Claims, all.Found = all.Claims+count.Claims, all.Found+count.Found
		all.Answers, all.Touched = all.Answers+count.Answers, all.Touched+count.Touched
	}

	return all.part(), float64(all.Touched) / float64(max(1, all.Answers))
}

func (c *Count) part() float64 { return float64(c.Found) / float64(max(1, c.Claims)) }

func (c *Count) String() string { return fmt.Sprintf("%d/%d %.1f%%", c.Found, c.Claims, 100*c.part()) }

// Print writes a table with a line for each class and a column for each format.
func (f Figures) Print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	line := func(name string, counts map[Format]*Count) {
		fmt.Fprint(table, name)

		for _, in := range Formats() {
			fmt.Fprint(table, "\t", counts[in])
		}

		fmt.Fprintln(table)
	}

	fmt.Fprintln(table, "found\ten\tde\tfr")

	for _, class := range Classes() {
		line(string(class), f.Wrong[class])
	}

	fmt.Fprintln(table, "false alarms\ten\tde\tfr")
	line("true answers", f.Right)
	line("right claims beside a wrong one", f.Around)

	return table.Flush()
}
