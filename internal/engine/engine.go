package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"quern.dev/quern/internal/disk"
	"quern.dev/quern/internal/fault"
	"quern.dev/quern/internal/sandbox"
)

// Config contains the settings of the sessions.
type Config struct {
	Sandbox *sandbox.Sandbox
	Program string // name of the child's program
	Log     *slog.Logger
	Folder  *disk.Watch // folder in which children write files

	Sessions int   // sessions that run at the same time; further ones wait
	Memory   int64 // bytes; DuckDB's own limit, see Mapped for the limit of the process
	Threads  int
	Disk     int64 // bytes that a session may write
	Data     int64 // bytes of rows that a session may return

	// Observe is called when something begins, and the function that it returns when it has ended. nil means that nobody observes.
	Observe func(ctx context.Context, what string) (ended func(error))
}

const overhead = 512 << 20

// Mapped returns how many bytes of memory a child may map if DuckDB's own limit is memory bytes. It is larger because
// the operating system counts mapped memory, and DuckDB's allocator keeps memory that it no longer uses.
func Mapped(memory int64) int64 { return 2*memory + overhead }

// Engine opens sessions.
type Engine struct {
	config Config
	slots  chan struct{}
}

// New returns an Engine.
func New(c Config) *Engine {
	if c.Observe == nil {
		c.Observe = func(context.Context, string) func(error) { return func(error) {} }
	}

	return &Engine{config: c, slots: make(chan struct{}, c.Sessions)}
}

// Session is one child. Only one goroutine may use a session. The caller of Open closes it.
type Session struct {
	Progress func(Progress) // is called with the progress of an inspection, and of a result in pieces
	Fields   []string       // the columns that the definition of the dataset names; an inspection reads documents with them
	IsPart   bool           // an inspection leaves columns without values without a type, because they are joined with those of other files

	engine *Engine
	child  *sandbox.Child
	ctx    context.Context //nolint:containedctx // the life of the child
}

// Open starts a session with an idle child. The child is killed when ctx ends or after the duration lasting.
//
// Faults: Unavailable if no child can be started, if no slot becomes free before ctx ends, or if the disk is full.
func (e *Engine) Open(ctx context.Context, lasting time.Duration) (session *Session, err error) {
	ended := e.config.Observe(ctx, "open")
	defer func() { ended(err) }()

	if err := e.config.Folder.Room(0); err != nil {
		return nil, err
	}

	select {
	case e.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, unavailable(ctx.Err())
	}

	child, err := e.config.Sandbox.Start(ctx, e.config.Program, sandbox.Limits{
		Memory: Mapped(e.config.Memory), Disk: e.config.Disk, Data: e.config.Data, Wall: lasting, CPU: lasting * time.Duration(e.config.Threads+1),
	})
	if err != nil {
		<-e.slots

		// A child that could not prepare itself reports the reason only as text, so check here whether the disk is
		// full.
		if full := e.config.Folder.Room(0); full != nil {
			err = full
		}

		return nil, unavailable(err)
	}

	return &Session{engine: e, child: child, ctx: ctx}, nil
}

// Mount makes the file at path readable in the child under a name.
func (s *Session) Mount(path, name string) error { return s.child.Mount(path, name) }

// Take ends the child and moves a file that the child wrote to the path to. It returns the size of the file in bytes.
func (s *Session) Take(name, to string) (int64, error) {
	size, err := s.child.Take(name, to, s.engine.config.Disk)

	return size, s.translate(err)
}

// Follow opens a file that the child is writing, to read what is written so far. The child can still change it.
func (s *Session) Follow(name string) (*os.File, error) { return s.child.Follow(name) }

// Close ends the child and returns the child's peak memory in bytes. It must be called once.
func (s *Session) Close() (memory int64) {
	exit := s.child.Close()
	<-s.engine.slots

	if exit.Err != nil && exit.Log != "" {
		s.engine.config.Log.WarnContext(s.ctx, "a sealed process failed", "error", exit.Err, "output", exit.Log)
	}

	return exit.Memory
}

// Inspect determines the columns, types and doubts of the mounted files.
//
// Faults: *FileError for problems with the files.
func (s *Session) Inspect(sources []Source, options Options, bounds Bounds) (Inspection, error) {
	return s.inspect(InspectRequest{Sources: sources, Options: options, Bounds: bounds})
}

// Preview does the same as Inspect and also returns the first rows.
func (s *Session) Preview(sources []Source, options Options, bounds Bounds) (Inspection, error) {
	return s.inspect(InspectRequest{Sources: sources, Options: options, Bounds: bounds, Preview: true})
}

func (s *Session) inspect(request InspectRequest) (Inspection, error) {
	request.Fields, request.IsPart = s.Fields, s.IsPart
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

// Convert writes an inspected file as Parquet with the requested columns. Take retrieves the file by the name in
// request.Output.
//
// Faults: *FileError for problems with the file.
func (s *Session) Convert(request ConvertRequest, progress func(Progress)) (Converted, error) {
	answer, err := s.ask(Request{Convert: &request}, progress)

	switch {
	case err != nil:
		return Converted{}, err
	case answer.Converted == nil:
		return Converted{}, s.nonsense("no conversion")
	}

	done := *answer.Converted
	if done.Rows < 0 || done.SetAsideCount < int64(len(done.SetAside)) || len(done.Sketch) > request.Sketch || !arePages(done.Pages) {
		return Converted{}, s.nonsense("invalid counts")
	}

	for i := range done.SetAside {
		if done.SetAside[i].Row < 1 {
			return Converted{}, s.nonsense("a row number below 1")
		}

		done.SetAside[i].Reason = clean(done.SetAside[i].Reason)
	}

	return done, nil
}

// arePages reports whether these can be the first rows of the pages of a document.
func arePages(first []int64) bool {
	return len(first) <= MaxPages && slices.IsSorted(first) && (len(first) == 0 || first[0] >= 1)
}

// Merge writes the rows of Quern's own data files to one file. Take retrieves the file by the name output.
//
// Faults: *FileError if the child reaches a limit.
func (s *Session) Merge(view View, output string) (rows int64, err error) {
	return s.merge(MergeRequest{View: view, Output: output})
}

// Rewrite writes the rows of one of Quern's own data files, except some, to another file. gone is the mounted file that says
// which. Take retrieves the file by the name output.
//
// Faults: *FileError if the child reaches a limit.
func (s *Session) Rewrite(view View, gone, output string) (rows int64, err error) {
	return s.merge(MergeRequest{View: view, Gone: gone, Output: output})
}

func (s *Session) merge(request MergeRequest) (rows int64, err error) {
	request.Memory, request.Threads = s.engine.config.Memory, s.engine.config.Threads

	answer, err := s.ask(Request{Merge: &request}, nil)

	switch {
	case err != nil:
		return 0, err
	case answer.Converted == nil || answer.Converted.Rows < 0:
		return 0, s.nonsense("no file")
	}

	return answer.Converted.Rows, nil
}

// ask sends a request and waits for the final answer to it. It passes each progress message before that to progress.
func (s *Session) ask(request Request, progress func(Progress)) (_ Answer, err error) {
	ended := s.engine.config.Observe(s.ctx, request.what())
	defer func() { ended(err) }()

	if err := s.child.Send(request); err != nil {
		return Answer{}, s.translate(err)
	}

	for {
		var answer Answer
		if err := s.child.Receive(&answer); err != nil {
			return Answer{}, s.translate(err)
		}

		switch {
		case answer.Failure != nil && answer.Failure.Code == NoRoom:
			return Answer{}, noRoom()
		case answer.Failure != nil:
			said := FileError{Code: known(answer.Failure.Code), Message: clean(answer.Failure.Message), Doubt: answer.Failure.Doubt, Source: answer.Failure.Source}
			if said.Doubt != nil {
				said.Doubt.clean()
			}

			return Answer{}, &said
		case answer.Progress == nil:
			return answer, nil
		case progress != nil && answer.Progress.Part >= 0 && answer.Progress.Part <= 1 && answer.Progress.Rows >= 0:
			progress(*answer.Progress)
		}
	}
}

// check rejects an inspection that cannot be the result of reading a file. It cleans the texts of the doubts.
func (s *Session) check(found Inspection, bounds Bounds) error {
	if len(found.Columns) == 0 || len(found.Columns) > bounds.Columns || len(found.Doubts) > 3*bounds.Columns+10 || len(found.Rows) > 100 {
		return s.nonsense("invalid columns")
	}

	seen := map[string]bool{}

	for _, c := range found.Columns {
		key := strings.ToLower(c.Name)
		if c.Name == "" || len(c.Name) > 300 || strings.HasPrefix(c.Name, "__") || !utf8.ValidString(c.Name) || strings.ContainsRune(c.Name, 0) || seen[key] {
			return s.nonsense("an invalid name")
		}

		seen[key] = true
	}

	for i := range found.Doubts {
		found.Doubts[i].clean()
	}

	return nil
}

// clean makes a doubt of a child one that can be stored and shown.
func (d *Doubt) clean() {
	d.Message = clean(d.Message)
	d.Suggestions = d.Suggestions[:min(maxSuggestions, len(d.Suggestions))]

	for n, value := range d.Suggestions {
		d.Suggestions[n] = clean(value)
	}

	if d.Code != NotATable && d.Code != WrappedRows {
		d.Code = ""
	}
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

const (
	maxMessage     = 1000
	maxSuggestions = 8
)

// clean returns a text of a child in a form that can be stored and shown: valid UTF-8, without control characters, cut
// to maxMessage bytes.
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

// translate maps an error of the child to a *FileError if the file caused it, and to a fault otherwise.
func (s *Session) translate(err error) error {
	switch {
	case err == nil:
		return nil
	case s.ctx.Err() != nil:
		return context.Cause(s.ctx)
	case fault.IsNoRoom(err):
		return fault.NoRoom(err)
	case errors.Is(err, sandbox.ErrMemory):
		return &FileError{Code: LimitExceeded, Message: "Reading the file needs more memory than is allowed. Split the file or ask the operator for a higher limit."}
	case errors.Is(err, sandbox.ErrOutput):
		return &FileError{Code: LimitExceeded, Message: "Reading the file needs more disk space than is allowed. Split the file or ask the operator for a higher limit."}
	case errors.Is(err, sandbox.ErrTimeout):
		return &FileError{Code: LimitExceeded, Message: "Reading the file takes longer than is allowed. Split the file or ask the operator for a higher limit."}
	case errors.Is(err, sandbox.ErrKilled) && s.child.Close().Signal == syscall.SIGKILL:
		return unavailable(err) // killed from outside, so the file did not cause it
	case errors.Is(err, sandbox.ErrKilled):
		return &FileError{Code: InvalidFile, Message: "The file cannot be read: it crashes the process that reads it."}
	default:
		return fault.Wrap(err, fault.Internal, "The file could not be read.")
	}
}

// noRoom returns the fault for a child that found the disk full.
func noRoom() error { return fault.NoRoom(fmt.Errorf("a sealed process: %w", syscall.ENOSPC)) }

func unavailable(err error) error {
	if fault.IsNoRoom(err) {
		return fault.NoRoom(err)
	}

	e := fault.Wrap(err, fault.Unavailable, "The process that reads data is not available. Try again.")
	e.RetryAfter = time.Second

	return e
}
