module github.com/belayproject/belay/internal/faultproof

go 1.26.0

require (
	github.com/belayproject/belay v0.1.0
	github.com/google/renameio/v2 v2.0.2
	github.com/hanwen/go-fuse/v2 v2.12.1
	github.com/natefinch/atomic v1.0.1
	golang.org/x/sys v0.49.0
)

replace github.com/belayproject/belay => ../..
