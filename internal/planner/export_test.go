package planner

// IsFunction and IsLight are the closed lists of words that no element of a form explains.
var (
	IsFunction = isFunction
	IsLight    = isLight
)
