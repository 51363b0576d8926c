package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/sandbox"
)

// Config is what sessions run on.
type Config struct {
	Sandbox *sandbox.Sandbox
	Program string // the child's program
	Log     *slog.Logger

	Sessions int   // at once; more wait
	Memory   int64 // DuckDB's own limit; the process may have more
	Threads  int
	Disk     int64 // bytes that a session may write
	Data     int64 // bytes of rows that may come out of a session
}

const overhead = 512 << 20

// Mapped is how much memory the child of a session may map if DuckDB's own limit is so much. What counts for the system is
// what is mapped, and DuckDB's allocator keeps what it no longer uses.
func Mapped(memory int64) int64 { return 2*memory + overhead }

// Engine opens sessions.
type Engine struct {
	config Config
	places chan struct{}
}

// New returns an Engine.
func New(c Config) *Engine { return &Engine{config: c, places: make(chan struct{}, c.Sessions)} }

// Session is one child. It is used by one goroutine, and closed by whoever opened it.
type Session struct {
	Progress func(Progress) // is told how far an inspection is

	engine *Engine
	child  *sandbox.Child
	ctx    context.Context //nolint:containedctx // the life of the child
}

// Open takes a ready child. It dies with ctx, and after the time.
//
// Faults: Unavailable, also if no place becomes free before ctx ends.
func (e *Engine) Open(ctx context.Context, lasting time.Duration) (*Session, error) {
	select {
	case e.places <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}

	child, err := e.config.Sandbox.Start(ctx, e.config.Program, sandbox.Limits{
		Memory: Mapped(e.config.Memory), Disk: e.config.Disk, Data: e.config.Data, Wall: lasting, CPU: lasting * time.Duration(e.config.Threads+1),
	})
	if err != nil {
		<-e.places

		return nil, unavailable(err)
	}

	return &Session{engine: e, child: child, ctx: ctx}, nil
}

// Link makes a file readable for the session under a name.
func (s *Session) Link(path, name string) error { return s.child.Link(path, name) }

// Take ends the session's child and moves a file that it wrote to a new place.
func (s *Session) Take(name, to string) (int64, error) {
	size, err := s.child.Take(name, to, s.engine.config.Disk)

	return size, s.translate(err)
}

// Close ends the child and says how much memory it took at most. It is called once.
func (s *Session) Close() (memory int64) {
	exit := s.child.Close()
	<-s.engine.places

	if exit.Err != nil && exit.Log != "" {
		s.engine.config.Log.WarnContext(s.ctx, "a child ended badly", "error", exit.Err, "said", exit.Log)
	}

	return exit.Memory
}

// Inspect finds out what the linked files have in them.
//
// Faults: *FileError about the files.
func (s *Session) Inspect(sources []Source, options Options, bounds Bounds) (Inspection, error) {
	return s.inspect(InspectRequest{Sources: sources, Options: options, Bounds: bounds})
}

// Preview is Inspect with the first rows.
func (s *Session) Preview(sources []Source, options Options, bounds Bounds) (Inspection, error) {
	return s.inspect(InspectRequest{Sources: sources, Options: options, Bounds: bounds, Preview: true})
}

func (s *Session) inspect(request InspectRequest) (Inspection, error) {
	request.Memory, request.Threads = s.engine.config.Memory, s.engine.config.Threads

	answer, err := s.ask(Request{Inspect: &request}, s.Progress)

	switch {
	case err != nil:
		return Inspection{}, err
	case answer.Inspection == nil:
		return Inspection{}, s.nonsense("no inspection")
	}

	return *answer.Inspection, s.check(*answer.Inspection, request.Bounds)
}

// Convert writes an inspected file as Parquet with these columns, under a name that Take knows.
//
// Faults: *FileError about the file.
func (s *Session) Convert(request ConvertRequest, progress func(Progress)) (Converted, error) {
	answer, err := s.ask(Request{Convert: &request}, progress)

	switch {
	case err != nil:
		return Converted{}, err
	case answer.Converted == nil:
		return Converted{}, s.nonsense("no conversion")
	}

	done := *answer.Converted
	if done.Rows < 0 || done.SetAsideCount < int64(len(done.SetAside)) || len(done.Sketch) > request.Sketch {
		return Converted{}, s.nonsense("impossible counts")
	}

	for i := range done.SetAside {
		if done.SetAside[i].Row < 1 {
			return Converted{}, s.nonsense("a row before the first")
		}

		done.SetAside[i].Reason = clean(done.SetAside[i].Reason)
	}

	return done, nil
}

// Merge writes the rows of our own data files as one file, under a name that Take knows.
//
// Faults: *FileError if the child may not have what it needs.
func (s *Session) Merge(view View, output string) (rows int64, err error) {
	request := MergeRequest{View: view, Output: output, Memory: s.engine.config.Memory, Threads: s.engine.config.Threads}

	answer, err := s.ask(Request{Merge: &request}, nil)

	switch {
	case err != nil:
		return 0, err
	case answer.Converted == nil || answer.Converted.Rows < 0:
		return 0, s.nonsense("no file")
	}

	return answer.Converted.Rows, nil
}

// ask sends a request and waits for what ends it.
func (s *Session) ask(request Request, progress func(Progress)) (Answer, error) {
	if err := s.child.Send(request); err != nil {
		return Answer{}, s.translate(err)
	}

	for {
		var answer Answer
		if err := s.child.Receive(&answer); err != nil {
			return Answer{}, s.translate(err)
		}

		switch {
		case answer.Failure != nil:
			return Answer{}, &FileError{Code: known(answer.Failure.Code), Message: clean(answer.Failure.Message)}
		case answer.Progress == nil:
			return answer, nil
		case progress != nil && answer.Progress.Part >= 0 && answer.Progress.Part <= 1 && answer.Progress.Rows >= 0:
			progress(*answer.Progress)
		}
	}
}

// check: what a child found must be what a file can have.
func (s *Session) check(found Inspection, bounds Bounds) error {
	if len(found.Columns) == 0 || len(found.Columns) > bounds.Columns || len(found.Doubts) > 3*bounds.Columns+10 || len(found.Rows) > 100 {
		return s.nonsense("impossible columns")
	}

	seen := map[string]bool{}

	for _, c := range found.Columns {
		key := strings.ToLower(c.Name)
		if c.Name == "" || len(c.Name) > 300 || strings.HasPrefix(c.Name, "__") || !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0) || seen[key] {
			return s.nonsense("an impossible name")
		}

		seen[key] = true
	}

	for i := range found.Doubts {
		found.Doubts[i].Message = clean(found.Doubts[i].Message)

		if code := found.Doubts[i].Code; code != NotATable && code != WrappedRows {
			found.Doubts[i].Code = ""
		}
	}

	return nil
}

func (f *FileError) Error() string { return f.Code + ": " + f.Message }

func known(code string) string {
	switch code {
	case InvalidFile, InvalidOptions, TooManyColumns, LineTooLong, LimitExceeded:
		return code
	default:
		return InvalidFile
	}
}

const maxMessage = 1000

// clean is a text of a child that can be stored and shown.
func clean(text string) string {
	text = strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' {
			return ' '
		}

		return r
	}, text), "�")

	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "")
	}

	return text
}

func (s *Session) nonsense(what string) error {
	return fault.Wrap(fmt.Errorf("%w: %s", sandbox.ErrProtocol, what), fault.Internal, "The file could not be read.")
}

// translate tells what the file is to blame for from what we are.
func (s *Session) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return s.ctx.Err()
	case errors.Is(err, sandbox.ErrMemory):
		return &FileError{LimitExceeded, "The file needs more memory to be read than is allowed."}
	case errors.Is(err, sandbox.ErrOutput):
		return &FileError{LimitExceeded, "The file needs more space when it is unpacked than is allowed."}
	case errors.Is(err, sandbox.ErrTimeout):
		return &FileError{LimitExceeded, "The file takes longer to be read than is allowed."}
	case errors.Is(err, sandbox.ErrKilled) && s.child.Close().Signal == syscall.SIGKILL:
		return unavailable(err) // by somebody outside: the file is not to blame
	case errors.Is(err, sandbox.ErrKilled):
		return &FileError{InvalidFile, "The file cannot be read: it makes the reader fail."}
	default:
		return fault.Wrap(err, fault.Internal, "The file could not be read.")
	}
}

func unavailable(err error) error {
	e := fault.Wrap(err, fault.Unavailable, "The process that reads data is not there. Try again.")
	e.RetryAfter = time.Second

	return e
}
