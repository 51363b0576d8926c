package benchmark

// Change says how the outcome of a question differs from that of another benchmark.
type Change string

// The changes.
const (
	Better Change = "better"
	Worse  Change = "worse"
	Same   Change = "same"
	Fresh  Change = "new" // the other benchmark did not ask the question
)

// Cause is something that changed between two benchmarks, or since a benchmark.
type Cause string

// The causes.
const (
	CauseQuestion   Cause = "question"   // the verified question
	CauseData       Cause = "data"       // the rows of a dataset that it needs
	CauseDefinition Cause = "definition" // the definition or the semantics of such a dataset
	CauseMode       Cause = "mode"
	CauseModel      Cause = "model"
	CauseRelease    Cause = "release" // the version of Quern, and with it rules and prompts
)

// changeOf compares two outcomes.
func changeOf(before, now Outcome) Change {
	switch {
	case now == "":
		return ""
	case before == "":
		return Fresh
	case now.rank() > before.rank():
		return Better
	case now.rank() < before.rank():
		return Worse
	default:
		return Same
	}
}

// Compared is a result beside the result of the same question in another benchmark.
type Compared struct {
	Result

	Before Outcome // in the benchmark that this one is compared with; empty if that one did not ask the question
	Change Change  // empty until the outcome is known
	Why    []Cause // what is known to have changed, if the outcome did
}

// compareResults compares the results of a question in two benchmarks. before is nil if the other one did not ask the question.
func compareResults(now Result, of Benchmark, before *Result, other *Benchmark) Compared {
	c := Compared{Result: now}

	if before != nil {
		c.Before = before.Outcome
	}

	c.Change = changeOf(c.Before, now.Outcome)
	if c.Change != Better && c.Change != Worse {
		return c
	}

	for _, one := range []struct {
		cause   Cause
		changed bool
	}{
		{CauseQuestion, now.Revision != before.Revision},
		{CauseData, now.data != before.data},
		{CauseDefinition, now.meaning != before.meaning},
		{CauseMode, of.Mode != other.Mode},
		{CauseModel, of.Mode == Model && other.Mode == Model && (of.Model != other.Model || of.Provider != other.Provider)},
		{CauseRelease, of.Release != other.Release},
	} {
		if one.changed {
			c.Why = append(c.Why, one.cause)
		}
	}

	return c
}
