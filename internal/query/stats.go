package query

// Stats are counts since New, and how many there are now.
type Stats struct {
	Running, Waiting, Places          int64 // now
	RefusedFull, RefusedUser, Invalid int64 // since New
	Rows                              int64 // since New
}

// Stats counts.
func (q *Query) Stats() Stats {
	g := q.gate

	return Stats{
		Running: int64(len(g.places)), Places: int64(cap(g.places)), Waiting: g.waiting.Load(),
		RefusedFull: g.refusedFull.Load(), RefusedUser: g.refusedUser.Load(), Invalid: q.invalid.Load(), Rows: q.given.Load(),
	}
}
