package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
)

// Uploader sends files to the object store, in parts, several at a time.
type Uploader struct {
	Client *Client
	// Parallel is the number of parts that are sent at once; 0 means 4.
	Parallel int
	// Store sends the parts, without a token; nil means &Retry{}.
	Store *Retry
	// Progress is called with the current state, often but never concurrently, unless it is nil.
	Progress func(UploadProgress)
	// Started is called with the session before anything is sent, so that another process can resume the upload, unless
	// it is nil.
	Started func(session uuid.UUID) error
}

// UploadSource is a file to send.
type UploadSource struct {
	Name string // name of the file in the service
	Path string
	Size int64
}

// UploadProgress is the progress of an upload.
type UploadProgress struct {
	Total, Stored int64 // bytes; Stored are those in the store, including Resumed
	Moving        int64 // bytes sent in parts that are not stored yet
	Resumed       int64 // bytes that were stored before this upload
	Files, Done   int   // numbers of files: all, and those stored
}

// Send uploads at most 100 files in a new session and returns the ID of the completed session.
func (u *Uploader) Send(ctx context.Context, files []UploadSource) (uuid.UUID, error) {
	request := PrepareUpload{}
	for _, file := range files {
		request.FilesToUpload = append(request.FilesToUpload, FileToUpload{Filename: file.Name, Size: file.Size})
	}

	prepared, err := Read[PreparedUpload](u.Client.PrepareUpload(ctx, nil, request))
	if err != nil {
		return uuid.Nil, err
	}

	if len(prepared.Files) != len(files) {
		return uuid.Nil, errors.New("the service prepared a different number of files than requested")
	}

	if u.Started != nil {
		if err := u.Started(prepared.SessionID); err != nil {
			return uuid.Nil, err
		}
	}

	sending := u.begin(prepared.SessionID)

	for i, file := range prepared.Files {
		target := &uploadFile{UploadFile: UploadFile{
			FileID: file.FileID, UploadID: file.UploadID, Key: file.Key, Filename: file.Filename, Size: files[i].Size, PartSize: file.PartSize,
		}, source: files[i], urls: map[int32]string{}}
		for part, address := range file.PresignedUrls {
			target.urls[int32(part)+1] = address.URL
		}

		sending.files = append(sending.files, target)
	}

	return prepared.SessionID, sending.run(ctx)
}

// ErrCannotResume reports that an upload session cannot be continued with the files at hand. A new session is needed.
var ErrCannotResume = errors.New("the upload cannot be resumed")

// Resume continues a session: it sends only the parts that the store does not have. The files must be those that the
// session was created with, in the same order and unchanged.
func (u *Uploader) Resume(ctx context.Context, session uuid.UUID, files []UploadSource) error {
	state, err := Read[Upload](u.Client.GetUpload(ctx, session))
	if err != nil {
		return err
	}

	if state.SessionStatus == UploadStatusAborted {
		return fmt.Errorf("%w: the upload %s was aborted", ErrCannotResume, session)
	}

	fits := slices.EqualFunc(state.Files, files, func(there UploadFile, here UploadSource) bool {
		return there.Filename == here.Name && there.Size == here.Size
	})
	if !fits {
		return fmt.Errorf("%w: the upload %s was started with other files", ErrCannotResume, session)
	}

	sending := u.begin(session)
	for i, file := range state.Files {
		sending.files = append(sending.files, &uploadFile{UploadFile: file, source: files[i], urls: map[int32]string{}})
	}

	return sending.run(ctx)
}

// sending is an upload in progress.
type sending struct {
	*Uploader

	session uuid.UUID
	store   *Retry
	files   []*uploadFile

	mutex    sync.Mutex
	progress UploadProgress
}

type uploadFile struct {
	UploadFile

	source  UploadSource
	opening sync.Mutex
	content *os.File // open while parts are sent
	missing int      // parts that are not stored
	etags   map[int32]string

	renewing sync.Mutex
	urls     map[int32]string
}

func (u *Uploader) begin(session uuid.UUID) *sending {
	store := u.Store
	if store == nil {
		store = &Retry{}
	}

	return &sending{Uploader: u, session: session, store: store}
}

func (s *sending) run(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)

	var (
		missing []part
		empty   []*uploadFile // no part is missing, but the file is not finished
	)

	for _, file := range s.files {
		parts, err := s.plan(ctx, file)
		if err != nil {
			return err
		}

		if missing = append(missing, parts...); len(parts) == 0 && file.FileStatus != UploadStatusCompleted {
			empty = append(empty, file)
		}
	}

	s.tell(func(*UploadProgress) {})

	for _, file := range empty {
		if err := s.finish(ctx, file); err != nil {
			return err
		}
	}

	queue := make(chan part)

	go func() {
		defer close(queue)

		for _, one := range missing {
			select {
			case queue <- one:
			case <-ctx.Done():
				return
			}
		}
	}()

	parallel := s.Parallel
	if parallel == 0 {
		parallel = 4
	}

	var workers sync.WaitGroup
	for range parallel {
		workers.Go(func() {
			for one := range queue {
				if err := s.deliver(ctx, one); err != nil {
					stop(err)

					return
				}
			}
		})
	}

	workers.Wait()

	for _, file := range s.files {
		if file.content != nil {
			_ = file.content.Close()
		}
	}

	return context.Cause(ctx)
}

// plan counts the stored parts and returns the missing ones.
func (s *sending) plan(ctx context.Context, file *uploadFile) (missing []part, err error) {
	s.progress.Files++
	s.progress.Total += file.Size

	if file.FileStatus == UploadStatusCompleted {
		s.progress.Done++
		s.progress.Stored += file.Size
		s.progress.Resumed += file.Size

		return nil, nil
	}

	file.etags = map[int32]string{}

	for _, there := range file.Parts {
		whole, err := file.holds(ctx, there)
		if err != nil {
			return nil, err
		}

		if whole {
			_, size := file.span(there.PartNumber)
			file.etags[there.PartNumber] = there.Etag
			s.progress.Stored += size
			s.progress.Resumed += size
		}
	}

	for number := int32(1); int64(number-1)*file.PartSize < file.Size; number++ {
		if file.etags[number] == "" {
			missing = append(missing, part{file, number})
		}
	}

	file.missing = len(missing)

	return missing, nil
}

// span returns the offset and the size of a part in its file.
func (f *uploadFile) span(number int32) (offset, size int64) {
	offset = int64(number-1) * f.PartSize

	return offset, max(0, min(f.PartSize, f.Size-offset))
}

// deliver sends a part, and finishes the file after its last one.
func (s *sending) deliver(ctx context.Context, one part) error {
	if err := one.file.open(); err != nil {
		return err
	}

	if err := s.put(ctx, one); err != nil {
		return err
	}

	last := false

	s.tell(func(*UploadProgress) {
		one.file.missing--
		last = one.file.missing == 0
	})

	if !last {
		return nil
	}

	return s.finish(ctx, one.file)
}

// finish completes the file from its parts.
func (s *sending) finish(ctx context.Context, file *uploadFile) error {
	body := FinishUpload{UploadID: file.UploadID, Key: file.Key}
	for _, number := range slices.Sorted(maps.Keys(file.etags)) {
		body.Parts = append(body.Parts, FinishedPart{PartNumber: number, Etag: file.etags[number]})
	}

	if _, err := Read[FinishedUpload](s.Client.FinishUpload(ctx, s.session, file.FileID, body)); err != nil {
		return fmt.Errorf("finishing %s: %w", file.source.Name, err)
	}

	if file.content != nil {
		_ = file.content.Close()
	}

	s.tell(func(p *UploadProgress) { p.Done++ })

	return nil
}

func (s *sending) tell(change func(*UploadProgress)) {
	s.mutex.Lock()
	defer s.mutex.Unlock()

	change(&s.progress)

	if s.Progress != nil {
		s.Progress(s.progress)
	}
}

// UploadName returns a file name that the service accepts: without folders and control characters.
func UploadName(path string) string {
	name := path[strings.LastIndexAny(path, `/\`)+1:]

	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}

		return r
	}, name)
}
