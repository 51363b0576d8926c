package query

// Stats holds counters since New and current numbers of statements.
type Stats struct {
	Running, Waiting, Slots           int64 // now, in sealed processes
	OnTrino                           int64 // now
	OpenIndexes                       int64 // now
	RefusedFull, RefusedUser, Invalid int64 // since New
	Rows                              int64 // since New
}

// Stats returns the current statistics.
func (q *Query) Stats() Stats {
	s := q.gate.stats()
	if q.there != nil {
		there := q.there.stats()
		s.OnTrino = there.Running
		s.RefusedFull += there.RefusedFull
		s.RefusedUser += there.RefusedUser
	}

	s.Invalid, s.Rows, s.OpenIndexes = q.invalid.Load(), q.given.Load(), q.indexes.count()

	return s
}
