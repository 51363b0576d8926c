package query

// Stats are counts since New, and how many there are now.
type Stats struct {
	Running, Waiting, Places          int64 // now
	RefusedFull, RefusedUser, Invalid int64 // since New
	Rows                              int64 // since New
}

// Stats counts.
func (q *Query) Stats() Stats {
	s := q.gate.stats()
	s.Invalid, s.Rows = q.invalid.Load(), q.given.Load()

	return s
}
