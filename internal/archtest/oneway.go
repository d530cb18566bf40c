// Copyright The belay Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// A room is the one place of what many packages need. Other code that does the same by itself is a second way.
type room struct {
	ratchet string   // the figure of what is left of other ways
	use     string   // what to use, and why
	dirs    []string // the directories of the room
	found   func(f *File, n ast.Node) (what string)
}

var rooms = []room{
	{
		"own-decoder", "use internal/strictjson, or configsync.DecodeStrict in a program: names in another case and " +
			"names that stand twice are errors there too, and an error says what fits",
		[]string{"internal/strictjson"}, ownDecoder,
	},
	{
		"own-group", "use internal/process: it signals no group after its number is free, and leaves no process behind",
		[]string{"internal/process"}, ownGroup,
	},
	{
		"own-watch", "use internal/watch: its watches go on after a failure without a new list",
		[]string{"internal/watch"}, ownWatch,
	},
	{
		"own-backoff", "use internal/backoff: its delays neither overflow nor outlive a context, and its jitter is named",
		[]string{"internal/backoff"}, ownBackoff,
	},
	{
		"own-poll", "use testproc.Poll or testproc.NewPace: they have a limit, and ask less often the longer they wait; " +
			"and backoff.Sleep for what repeats until a context ends",
		[]string{"internal/testproc", "internal/backoff"}, ownPoll,
	},
}

// SecondWays gives the places of some files that do what a room of that ratchet is for.
func SecondWays(ratchet string, files []*File) []Violation {
	at := slices.IndexFunc(rooms, func(r room) bool { return r.ratchet == ratchet })
	if at < 0 {
		return nil
	}
	r := rooms[at]
	var vs []Violation
	for _, f := range files {
		if !f.isGo() || slices.Contains(r.dirs, f.Dir()) {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			if what := r.found(f, n); what != "" {
				vs = append(vs, Violation{f.at(n), what, r.use})
			}
			return true
		})
	}
	return vs
}

// GrownWays gives the places of the second ways that are more than a directory's limit.
func GrownWays(t *Tree, have, limits map[string]Figures) []Violation {
	var vs []Violation
	t.eachDir(func(dir string, files []*File) {
		for _, r := range rooms {
			if have[dir][r.ratchet] > limits[dir][r.ratchet] {
				vs = append(vs, SecondWays(r.ratchet, files)...)
			}
		}
	})
	return vs
}

// roomRatchets count the other ways.
func roomRatchets() []ratchet {
	var all []ratchet
	for _, r := range rooms {
		all = append(all, ratchet{r.ratchet, r.use, func(files []*File) int { return len(SecondWays(r.ratchet, files)) }})
	}
	return all
}

func ownDecoder(_ *File, n ast.Node) string {
	if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == "DisallowUnknownFields" {
		return "decodes strictly by encoding/json"
	}
	return ""
}

// ownGroup finds a signal to a group, and a process that is made the leader of one.
func ownGroup(f *File, n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		kills := f.calls(n, "syscall", "Kill") || f.calls(n, "golang.org/x/sys/unix", "Kill")
		if kills && isNegative(n.Args[0]) {
			return "signals a process group"
		}
	case *ast.KeyValueExpr:
		if id, ok := n.Key.(*ast.Ident); ok && id.Name == "Setpgid" {
			return "starts a process group"
		}
	case *ast.AssignStmt:
		for _, to := range n.Lhs {
			if sel, ok := to.(*ast.SelectorExpr); ok && sel.Sel.Name == "Setpgid" {
				return "starts a process group"
			}
		}
	}
	return ""
}

func isNegative(e ast.Expr) bool {
	u, ok := e.(*ast.UnaryExpr)
	if !ok || u.Op != token.SUB {
		return false
	}
	all, isLit := u.X.(*ast.BasicLit) // -1 is every process, no group
	return !isLit || all.Value != "1"
}

const (
	cachePath = "k8s.io/client-go/tools/cache"
	waitPath  = "k8s.io/apimachinery/pkg/util/wait"
)

// watchers are the functions of client-go that make a list and watch.
var watchers = []string{
	"NewListWatchFromClient", "NewFilteredListWatchFromClient", "NewReflector", "NewNamedReflector",
	"NewReflectorWithOptions", "NewSharedInformer", "NewSharedIndexInformer", "NewSharedIndexInformerWithOptions",
	"NewInformer", "NewIndexerInformer", "NewInformerWithOptions", "NewTransformingInformer",
}

// backoffs and polls are those of apimachinery.
var (
	backoffs = []string{"Jitter", "JitterUntil", "BackoffUntil", "ExponentialBackoff", "ExponentialBackoffWithContext"}
	polls    = []string{
		"Poll", "PollImmediate", "PollUntil", "PollImmediateUntil", "PollInfinite", "PollImmediateInfinite",
		"PollUntilContextCancel", "PollUntilContextTimeout",
	}
)

func ownWatch(f *File, n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f.calls(n, cachePath, watchers...) {
			return "calls " + printed(n)
		}
	case *ast.CompositeLit:
		if isNamed(f, n.Type, cachePath, "ListWatch") {
			return "has a cache.ListWatch of its own"
		}
	}
	return ""
}

// isNamed reports whether an expression names something of an imported package.
func isNamed(f *File, e ast.Expr, importPath, name string) bool {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && x.Name == f.imported(importPath)
}

// ownBackoff finds the backoffs of apimachinery, delays that are doubled, and, outside of tests, delays that are drawn.
func ownBackoff(f *File, n ast.Node) string {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if isNamed(f, n.Type, waitPath, "Backoff") {
			return "has a wait.Backoff"
		}
	case *ast.CallExpr:
		switch {
		case f.calls(n, waitPath, backoffs...):
			return "calls " + printed(n)
		case !f.isTest() && f.calls(n, "time", "Duration") && f.drawsRandom(n):
			return "draws a delay by itself"
		}
	case *ast.AssignStmt:
		if len(n.Lhs) == 1 && isDoubled(n.Rhs[0], n.Lhs[0]) {
			return "doubles a delay by itself"
		}
	}
	return ""
}

// isDoubled reports whether a value is min(2*x, limit).
func isDoubled(value, x ast.Expr) bool {
	call, ok := value.(*ast.CallExpr)
	if !ok || !isBuiltin(call, "min") {
		return false
	}
	return slices.ContainsFunc(call.Args, func(e ast.Expr) bool {
		product, ok := e.(*ast.BinaryExpr)
		if !ok || product.Op != token.MUL {
			return false
		}
		name := namesOf(x)
		return isTwo(product.X) && namesOf(product.Y) == name || isTwo(product.Y) && namesOf(product.X) == name
	})
}

func isTwo(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Value == "2"
}

// namesOf gives the name of a variable or field: b.delay.
func namesOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return namesOf(e.X) + "." + e.Sel.Name
	}
	return fmt.Sprintf("%T", e)
}

func (f *File) drawsRandom(n ast.Node) (draws bool) {
	ast.Inspect(n, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			draws = draws || id.Name == f.imported("math/rand") || id.Name == f.imported("math/rand/v2")
		}
		return !draws
	})
	return draws
}

// ownPoll finds the polls of apimachinery, and, in tests and what serves them, loops that wait for a tick.
func ownPoll(f *File, n ast.Node) string {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f.calls(n, waitPath, polls...) {
			return "calls " + printed(n)
		}
	case *ast.ForStmt:
		if f.servesTests() && f.waitsForTick(n, n.Body) {
			return "polls in a loop of its own"
		}
	case *ast.RangeStmt:
		if f.servesTests() && (f.isTick(n.X) || f.waitsForTick(n, n.Body)) {
			return "polls in a loop of its own"
		}
	}
	return ""
}

func (f *File) servesTests() bool { return f.isTest() || f.imported("testing") != "" }

// waitsForTick reports whether a loop, without the loops and functions within, waits for a tick and goes on: by a
// select whose other cases end it, or with a look at the clock. A select that also waits for a wake-up is no poll. Nor
// is a time.After without a limit, by which tests let virtual time pass.
func (f *File) waitsForTick(loop ast.Stmt, body *ast.BlockStmt) (waits bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt, *ast.RangeStmt, *ast.FuncLit:
			return false
		case *ast.SelectStmt:
			waits = waits || f.selectsTick(n)
			return false
		case *ast.UnaryExpr:
			_, after := n.X.(*ast.CallExpr)
			waits = waits || n.Op == token.ARROW && f.isTick(n.X) && (!after || looksAtClock(f, loop))
		}
		return !waits
	})
	return waits
}

// selectsTick reports whether a select goes on after a tick and after nothing else. The end of a context ends the loop.
func (f *File) selectsTick(s *ast.SelectStmt) (ticks bool) {
	for _, c := range s.Body.List {
		clause := c.(*ast.CommClause) //nolint:forcetypeassert // a select has no other
		from, ok := receivedFrom(clause.Comm)
		switch {
		case len(clause.Body) > 0 || ok && isDone(from):
		case ok && f.isTick(from):
			ticks = true
		default:
			return false
		}
	}
	return ticks
}

// receivedFrom gives the channel of a case that drops what it receives.
func receivedFrom(comm ast.Stmt) (ast.Expr, bool) {
	e, ok := comm.(*ast.ExprStmt)
	if !ok {
		return nil, false
	}
	u, ok := e.X.(*ast.UnaryExpr)
	if !ok {
		return nil, false
	}
	return u.X, true
}

// isDone reports whether a channel is that of a context: ctx.Done().
func isDone(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	return ok && sel.Sel.Name == "Done"
}

func looksAtClock(f *File, loop ast.Stmt) (looks bool) {
	ast.Inspect(loop, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		looks = looks || ok && f.calls(call, "time", "Now", "Since", "Until")
		return !looks
	})
	return looks
}

// isTick reports whether an expression is the channel of a timer or ticker: time.After(d), time.Tick(d), ticker.C.
func (f *File) isTick(e ast.Expr) bool {
	if call, ok := e.(*ast.CallExpr); ok {
		return f.calls(call, "time", "After", "Tick")
	}
	return strings.HasSuffix(namesOf(e), ".C") && f.imported("time") != ""
}
