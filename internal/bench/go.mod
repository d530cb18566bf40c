module github.com/belayproject/belay/internal/bench

go 1.26.0

require (
	github.com/belayproject/belay v0.0.0
	golang.org/x/sys v0.49.0
)

replace github.com/belayproject/belay => ../..
