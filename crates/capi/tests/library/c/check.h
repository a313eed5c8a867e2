/* The checks of the test programs: the first failure ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__,  \
				#what, errno, strerror(errno));                                    \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#define CHECK_IS(found, wanted)                                                                    \
	do {                                                                                       \
		long long is_ = (long long)(found), should_ = (long long)(wanted);                 \
		if (is_ != should_) {                                                              \
			fprintf(stderr, "%s:%d: %s is %lld (0x%llx), not %lld (0x%llx); errno %d, %s\n", \
				__FILE__, __LINE__, #found, is_, (unsigned long long)is_, should_, \
				(unsigned long long)should_, errno, strerror(errno));              \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* A call that must fail, and how. */
#define CHECK_FAILS(call, why)                                                                     \
	do {                                                                                       \
		errno = 0;                                                                         \
		CHECK_IS(call, -1);                                                                \
		CHECK_IS(errno, why);                                                              \
	} while (0)

#endif
