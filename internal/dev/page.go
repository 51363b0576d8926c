package dev

import (
	"html/template"
	"net/http"
)

const badName = "A name has 1 to 31 lower-case letters, digits and hyphens, and begins with a letter."

// Users returns suggested usernames; any name is accepted.
func Users() []string { return []string{"ada", "bob", "carol"} }

// page is the content of the sign-in page.
type page struct {
	Client    string // program that requests the sign-in
	Code      string // code that the program shows in its terminal
	AskCode   bool
	Action    string
	Hidden    map[string]string
	Username  string // suggested
	Done      string // user who has signed in
	SignedOut bool
	Problem   string
	Users     []string
}

// kept returns the parameters of a request that the form must send again.
func kept(r *http.Request, names ...string) map[string]string {
	fields := map[string]string{}
	for _, name := range names {
		fields[name] = r.FormValue(name)
	}

	return fields
}

func showPage(w http.ResponseWriter, shown page) {
	shown.Users = Users()
	writePage(w, http.StatusOK, shown)
}

func refusePage(w http.ResponseWriter, problem string) {
	writePage(w, http.StatusBadRequest, page{Problem: problem})
}

func writePage(w http.ResponseWriter, status int, shown page) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = loginPage.Execute(w, shown) // fails only if the client disconnected
}

//nolint:gochecknoglobals // parsed once
var loginPage = template.Must(template.New("login").Parse(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Quern: sign in</title>
<style>
body { font: 1.1rem/1.5 system-ui, sans-serif; max-width: 30rem; margin: 3rem auto; padding: 0 1rem }
input, button { font: inherit; padding: .4rem .8rem }
input { width: 14rem }
.note { background: #fff3cd; color: #533f03; padding: .5rem 1rem }
</style>
</head>
<body>
<h1>Sign in to Quern</h1>
{{if .Problem}}<p role="alert">{{.Problem}}</p>
{{else if .Done}}<p>Signed in as <b>{{.Done}}</b>. You can close this window and go back to the terminal.</p>
{{else if .SignedOut}}<p>You are signed out.</p>
{{else}}<p class="note">For development on this machine only: there are no passwords. You can sign in with any name.</p>
{{if .Client}}<p><b>{{.Client}}</b> asks you to sign in.{{if .Code}} Its terminal must show the code <b>{{.Code}}</b>; if it does not, close this page.{{end}}</p>{{end}}
<form method="post" action="{{.Action}}">
{{range $name, $value := .Hidden}}<input type="hidden" name="{{$name}}" value="{{$value}}">
{{end}}{{if .AskCode}}<p><label>Code that the terminal shows<br><input name="user_code" required autofocus autocomplete="off"></label></p>
{{end}}<p><label>User name<br><input name="username" list="users" value="{{.Username}}" required pattern="[a-z][a-z0-9\-]{0,30}"{{if not .AskCode}} autofocus{{end}}></label></p>
<datalist id="users">{{range .Users}}<option value="{{.}}"></option>{{end}}</datalist>
<p><button>Sign in</button></p>
</form>
<p>You can use any name, for example {{range $n, $user := .Users}}{{if $n}}, {{end}}{{$user}}{{end}}.</p>
{{end}}</body>
</html>
`))
