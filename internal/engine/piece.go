package engine

// PieceSize is how large the pieces of a result become. A piece ends when it reaches either number.
type PieceSize struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// Span is a part of a file, in bytes.
type Span struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// Size returns the number of bytes.
func (s Span) Size() int64 { return s.To - s.From }

// Piece is some rows of a result. Its head, its body and its tail, one after another, are a file of the same format as
// the result. The bodies of all pieces and the end of the result, one after another, are the file of the result.
type Piece struct {
	Rows int64 `json:"rows"`
	Body Span  `json:"body"` // in Ran.File
	Head Span  `json:"head"` // in Ran.Ends
	Tail Span  `json:"tail"` // likewise
}

// Bytes returns the size of the piece.
func (p Piece) Bytes() int64 { return p.Head.Size() + p.Body.Size() + p.Tail.Size() }

// maxPieces is the largest number of pieces of a result.
const maxPieces = 100_000

// isWhole reports whether the pieces and the end are the whole result, each byte and each row once.
func (r *Ran) isWhole() bool {
	var at, rows int64

	for _, p := range r.Pieces {
		if p.Rows < 0 || p.Body.From != at || p.Body.Size() < 0 || p.Head.From < 0 || p.Head.Size() < 0 || p.Tail.From < 0 || p.Tail.Size() < 0 {
			return false
		}

		at, rows = p.Body.To, rows+p.Rows
	}

	return len(r.Pieces) > 0 && len(r.Pieces) <= maxPieces && rows == r.Rows && r.File != "" && r.End.From == at && r.End.Size() >= 0
}

// TakePieces ends the child and moves the file of a result in pieces to the path to, and the heads and tails to the path
// ends. It returns the pieces and what follows them.
func (r *Result) TakePieces(to, ends string) (Ran, error) {
	size, err := r.Take(to)
	if err != nil {
		return Ran{}, err
	}

	var sizeOfEnds int64

	if r.ran.Ends != "" {
		if sizeOfEnds, err = r.session.child.Take(r.ran.Ends, ends, r.session.engine.config.Disk); err != nil {
			return Ran{}, r.session.explain(err)
		}
	}

	for _, p := range r.ran.Pieces {
		if max(p.Head.To, p.Tail.To) > sizeOfEnds {
			return Ran{}, r.session.wrong("a piece without its head")
		}
	}

	if r.ran.End.To != size {
		return Ran{}, r.session.wrong("pieces that are not the file")
	}

	return *r.ran, nil
}
