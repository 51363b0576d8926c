// Eval measures the quality of the answers of a service. It reads a set of questions with known answers, loads their
// tables through the service, asks the questions, compares the answers and writes a report. Run it in the root of the
// repository:
//
//	go run ./eval [-dir DIR] [-suite NAME] [-split dev|held-out] [-model NAME] [-forms FILE] [-compare REPORT] [-out DIR]
//
// It starts its own service beside the stack, or uses the one at QUERN_URL with QUERN_TOKEN. The models gold, planted,
// replies, forms and mutated are scripted: gold answers every question correctly, planted gives some wrong answers, replies
// reads its answers from a file, forms answers with forms from a file, and mutated answers with wrong versions of the right
// statements. They measure the pipeline and this program. The suites grounding and documents ask no questions. Progress is
// written to standard error; the last line of standard output is
//
//	eval <suite> <split> <model> n=… answered=… precision=… accuracy=… refused-right=…
//
// For a split named held-out only totals are shown and stored: developers run it but never read its questions.
// docs/quality.md describes what is measured and how.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

// options are the command-line options.
type options struct {
	dir, suite, split, agent, model, provider string
	compare, out, replies, forms              string
	parallel, most                            int
	profiles                                  time.Duration
	scripted                                  bool
}

// heldOut is the split for which only totals are shown and stored.
const heldOut = "held-out"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)

	stop()

	if err != nil {
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	var o options

	flag.StringVar(&o.dir, "dir", "", "`folder` of the question sets; default: eval/business for the suite business, else $EVAL_DIR or eval/testdata")
	flag.StringVar(&o.suite, "suite", "all", "suite, or the common prefix of several: defog for all defog-…")
	flag.StringVar(&o.split, "split", "dev", "split of the set: dev or held-out")
	flag.StringVar(&o.model, "model", "", "model of the service, or gold, planted, replies, forms, mutated or none; default: the first model of the service")
	flag.StringVar(&o.agent, "agent", "nl2ql", "agent that answers: nl2ql or assistant")
	flag.StringVar(&o.provider, "provider", "", "provider of the model")
	flag.StringVar(&o.compare, "compare", "", "earlier `report` (JSON) to compare with")
	flag.StringVar(&o.replies, "replies", "", "`file` with the replies of the scripted model to each question")
	flag.StringVar(&o.forms, "forms", "", "`file` with the forms of the scripted model; default: forms.ndjson beside the questions")
	flag.StringVar(&o.out, "out", "bin/eval", "`folder` for the report and the page")
	flag.IntVar(&o.parallel, "parallel", 4, "questions asked at the same time")
	flag.IntVar(&o.most, "most", 0, "most statements of each mutation; 0 means all")
	flag.DurationVar(&o.profiles, "profiles", 15*time.Minute, "time limit for the profiles of the tables; the models gold, planted and replies do not need them")
	flag.BoolVar(&o.scripted, "scripted", false, "put the reply of the scripted model into the question, for a service that QUERN_URL names and that was built with the tag scripted")
	flag.Parse()

	o.dir = cmp.Or(o.dir, ownSuite(o.suite), os.Getenv("EVAL_DIR"), "eval/testdata")

	if o.suite == groundingSuite {
		return measureGrounding(o)
	}

	if o.suite == documentsSuite {
		return measureDocuments(ctx, o)
	}

	earlier, err := readReport(o.compare)
	if err != nil {
		return err
	}

	questions, err := readQuestions(o.dir, o.split, o.suite)
	if err != nil {
		return err
	}

	script, err := scriptFor(o, questions)
	if err != nil {
		return err
	}

	s, stop, err := open(ctx, &o, script)
	if err != nil {
		return err
	}
	defer stop()

	set := filepath.Join(o.dir, o.split)
	if err := s.loadAll(ctx, set, tablesOf(questions), o.split); err != nil {
		return err
	}

	if script == nil || script.forms != nil || script.replays != nil { // forms are compiled with what the profiles say
		if err := s.awaitProfiles(ctx, tablesOf(questions), o.profiles); err != nil {
			return err
		}
	}

	if script != nil && script.replays != nil {
		return s.measureMutated(ctx, questions, o, script)
	}

	marks, err := s.askAll(ctx, questions, o, script)
	if err != nil {
		return err
	}

	unexpected := errors.Join(script.check(marks, o.split == heldOut), checkNone(o, marks))

	made := newReport(o, marks)
	made.Forms = script.countForms(marks)

	return errors.Join(made.publish(o, earlier), unexpected)
}

// ownSuite returns the folder of a suite of this repository that has its own folder, or "".
func ownSuite(suite string) string {
	if suite == "business" {
		return "eval/business"
	}

	return ""
}

// open starts a service, or connects to the one that the environment names.
func open(ctx context.Context, o *options, script *script) (s *service, stop func(), err error) {
	if address := os.Getenv("QUERN_URL"); address != "" {
		if script != nil && !o.scripted {
			return nil, nil, fmt.Errorf("the model %s needs a service that eval starts: unset QUERN_URL", o.model)
		}

		s, err = newService(ctx, address, os.Getenv("QUERN_TOKEN"))

		return s, func() {}, err
	}

	if o.scripted {
		return nil, nil, errors.New("-scripted needs a service with scripted agents: set QUERN_URL")
	}

	return start(ctx, o, script)
}
