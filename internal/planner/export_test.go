package planner

// IsFunction and IsLight report whether a word is in the closed lists of words that no element of a form explains.
func IsFunction(word string) bool { return isFunction(word) }

func IsLight(stem string) bool { return isLight(stem) }
