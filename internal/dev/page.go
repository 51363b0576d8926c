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
:root { color-scheme: light dark }
* { box-sizing: border-box }
body { font: 16px/24px system-ui, sans-serif; max-width: 24rem; margin: 0 auto; padding: 18vh 1rem 2rem; color: light-dark(#1b1e20, #e7e9eb); background: light-dark(#f7f7f5, #0f1113) }
h1 { font-size: 28px; line-height: 36px; font-weight: 600; margin: 0 0 16px }
input, button { font: inherit; width: 100%; height: 44px; border-radius: 8px; padding: 0 12px }
input { margin-top: 4px; color: inherit; border: 1px solid light-dark(#85898e, #69717a); background: light-dark(#fff, #16191c) }
button { border: 0; font-weight: 500; color: light-dark(#fff, #06241d); background: light-dark(#0f6e5e, #45c2a5) }
:focus-visible { outline: 2px solid light-dark(#1f5aa6, #8fbdf5); outline-offset: 2px }
label { font-weight: 500 }
label input { font-weight: 400 }
.note { border-radius: 8px; padding: 8px 12px; font-size: 14px; line-height: 20px; color: light-dark(#7a4a00, #f0be6a); background: light-dark(#fdf1dc, #322409) }
</style>
</head>
<body>
<h1>Sign in to Quern</h1>
{{if .Problem}}<p role="alert">{{.Problem}}</p>
{{else if .Done}}<p>Signed in as <b>{{.Done}}</b>. You can close this window and go back to the terminal.</p>
{{else if .SignedOut}}<p>You are signed out.</p>
{{else}}<p class="note">For development on this machine only. There are no passwords: sign in with any name, for example {{range $n, $user := .Users}}{{if $n}}, {{end}}{{$user}}{{end}}.</p>
{{if and .Client (ne .Client "quern-console")}}<p><b>{{.Client}}</b> asks you to sign in.{{if .Code}} Its terminal must show the code <b>{{.Code}}</b>; if it does not, close this page.{{end}}</p>{{end}}
<form method="post" action="{{.Action}}">
{{range $name, $value := .Hidden}}<input type="hidden" name="{{$name}}" value="{{$value}}">
{{end}}{{if .AskCode}}<p><label>Code that the terminal shows<br><input name="user_code" required autofocus autocomplete="off"></label></p>
{{end}}<p><label>User name<br><input name="username" list="users" value="{{.Username}}" required pattern="[a-z][a-z0-9\-]{0,30}"{{if not .AskCode}} autofocus{{end}}></label></p>
<datalist id="users">{{range .Users}}<option value="{{.}}"></option>{{end}}</datalist>
<p><button>Sign in</button></p>
</form>
{{end}}</body>
</html>
`))
