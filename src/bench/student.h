/* student.h: intervals for few measurements: Student's t. */
#ifndef LS_BENCH_STUDENT_H
#define LS_BENCH_STUDENT_H

/* The share of Student's t distribution with `df` > 0 degrees of freedom (need not be whole) below t. */
double ls_student_below(double t, double df);
/* The t below which the share `p` in (0, 1) lies: 2.776 for p = 0.975 and 4 degrees of freedom. */
double ls_student_quantile(double p, double df);

#endif
