// Eval says how good the answers of a service are. It reads a set of questions whose answers are known, loads their
// tables through the service, asks, compares and reports. Run it at the root of the repository:
//
//	go run ./eval [-dir DIR] [-suite NAME] [-split dev|held-out] [-model NAME] [-compare REPORT] [-out DIR]
//
// It starts a service of its own beside the stack, or asks the one at QUERN_URL with QUERN_TOKEN. The models gold,
// planted and replies are scripted: the first knows every answer, the second gives some wrong ones, the third says what
// stands in a file. They measure the pipeline and this program. Progress goes to standard error; the last line of standard output is
//
//	eval <suite> <split> <model> n=… answered=… precision=… accuracy=… refused-right=…
//
// Of a split named held-out nothing but totals is shown or stored: it is run, never read. docs/quality.md says what
// is measured and how.
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

// options are what a run is asked for.
type options struct {
	dir, suite, split, agent, model, provider string
	compare, out, replies                     string
	parallel                                  int
	profiles                                  time.Duration
	scripted                                  bool
}

// heldOut is the split of which only totals are known.
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

	flag.StringVar(&o.dir, "dir", "", "`folder` of the question sets, by default that of our own suite of this name, $EVAL_DIR, or else our own small set")
	flag.StringVar(&o.suite, "suite", "all", "suite, or the common beginning of several: defog for all defog-…")
	flag.StringVar(&o.split, "split", "dev", "folder of the set: dev or held-out")
	flag.StringVar(&o.model, "model", "", "model that the service is asked to use, or gold, planted or replies, or none; its first one by default")
	flag.StringVar(&o.agent, "agent", "nl2ql", "agent that is asked: nl2ql or assistant")
	flag.StringVar(&o.provider, "provider", "", "provider of the model")
	flag.StringVar(&o.compare, "compare", "", "earlier `report` (JSON) to compare with")
	flag.StringVar(&o.replies, "replies", "", "`file` of what the scripted model replies says to each question")
	flag.StringVar(&o.out, "out", "bin/eval", "`folder` for the report and the page")
	flag.IntVar(&o.parallel, "parallel", 4, "questions asked at once")
	flag.DurationVar(&o.profiles, "profiles", 15*time.Minute, "how long to wait for the profiles of the tables; 0 for models that are scripted")
	flag.BoolVar(&o.scripted, "scripted", false, "put what the scripted model says into the question, for a service with QUERN_RUN_SCRIPTED")
	flag.Parse()

	o.dir = cmp.Or(o.dir, ownSuite(o.suite), os.Getenv("EVAL_DIR"), "eval/testdata")

	if o.suite == groundingSuite {
		return measureGrounding(o)
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

	if script == nil {
		if err := s.awaitProfiles(ctx, tablesOf(questions), o.profiles); err != nil {
			return err
		}
	}

	marks, err := s.askAll(ctx, questions, o, script)
	if err != nil {
		return err
	}

	unexpected := errors.Join(script.check(marks, o.split == heldOut), checkNone(o, marks))

	return errors.Join(newReport(o, marks).publish(o, earlier), unexpected)
}

// ownSuite is the folder of a suite of ours that has one to itself.
func ownSuite(suite string) string {
	if suite == "business" {
		return "eval/business"
	}

	return ""
}

// open starts a service, or finds the one that is named by the environment.
func open(ctx context.Context, o *options, script *script) (s *service, stop func(), err error) {
	if address := os.Getenv("QUERN_URL"); address != "" {
		if script != nil && !o.scripted {
			return nil, nil, fmt.Errorf("the model %s needs a service that is started with it: unset QUERN_URL", o.model)
		}

		s, err = newService(ctx, address, os.Getenv("QUERN_TOKEN"))

		return s, func() {}, err
	}

	return start(ctx, o, script)
}
