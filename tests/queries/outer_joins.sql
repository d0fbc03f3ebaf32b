-- left
SELECT a.id, a.seller, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT OUTER JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id AND b.price > a.reserve;
SELECT a.id, a.seller, b.price
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND b.price > a.reserve AND overlap(a.ts, 3, b.ts, 1);

-- right
SELECT a.id, b.price FROM auctions [RANGE 3 SECONDS] a RIGHT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id;
SELECT a.id, b.price FROM auctions a RIGHT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3, b.ts, 1);

-- full
SELECT p.id, p.name, a.id AS aid, a.seller
FROM persons [RANGE 2 SECONDS] p
FULL OUTER JOIN auctions [RANGE 3 SECONDS] a ON p.id = a.seller;
SELECT p.id, p.name, a.id AS aid, a.seller
FROM persons p
FULL JOIN auctions a ON p.id = a.seller AND overlap(p.ts, 2, a.ts, 3);

-- left where null
SELECT a.id, a.ts
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECOND] b ON b.auction = a.id
WHERE b.auction IS NULL;
SELECT a.id, a.ts
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3, b.ts, 1)
WHERE b.auction IS NULL;

-- inner then left
SELECT p.name, a.id, b.price
FROM persons [RANGE 9 SECONDS] p
JOIN auctions [RANGE 5 SECONDS] a ON p.id = a.seller
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id AND b.bidder = p.id;
SELECT p.name, a.id, b.price
FROM (persons p JOIN auctions a ON p.id = a.seller AND overlap(p.ts, 9, a.ts, 5))
LEFT JOIN bids b ON b.auction = a.id AND b.bidder = p.id AND overlap(p.ts, 9, a.ts, 5, b.ts, 2);

-- left left
SELECT a.id, b.price, v.who
FROM auctions [RANGE 5 SECONDS] a
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
LEFT JOIN views [RANGE 3 SECONDS] v ON v.auction = a.id AND v.who = b.bidder;
SELECT a.id, b.price, v.who
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 2)
LEFT JOIN views v ON v.auction = a.id AND v.who = b.bidder AND overlap(a.ts, 5, b.ts, 2, v.ts, 3);

-- left left free
SELECT a.id, b.price, v.who
FROM auctions [RANGE 5 SECONDS] a
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
LEFT JOIN views [RANGE 3 SECONDS] v ON v.auction = a.id;
SELECT a.id, b.price, v.who
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 2)
LEFT JOIN views v ON v.auction = a.id AND overlap(a.ts, 5, b.ts, 2, v.ts, 3);

-- left then inner
SELECT a.id, b.price, v.who
FROM auctions [RANGE 5 SECONDS] a
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
JOIN views [RANGE 3 SECONDS] v ON v.auction = a.id;
SELECT a.id, b.price, v.who
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 2)
JOIN views v ON v.auction = a.id AND overlap(a.ts, 5, b.ts, 2, v.ts, 3);

-- full then left
SELECT a.id, b.price, v.who
FROM auctions [RANGE 5 SECONDS] a
FULL JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
LEFT JOIN views [RANGE 3 SECONDS] v ON v.auction = COALESCE(a.id, b.auction);
SELECT a.id, b.price, v.who
FROM auctions a
FULL JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5, b.ts, 2)
LEFT JOIN views v ON v.auction = coalesce(a.id, b.auction) AND overlap(a.ts, 5, b.ts, 2, v.ts, 3);

-- left brackets
SELECT p.id, a.id AS aid, b.price
FROM persons [RANGE 9 SECONDS] p
LEFT JOIN (auctions [RANGE 5 SECONDS] a JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id) ON p.id = a.seller;
SELECT p.id, a.id AS aid, a.price
FROM persons p
LEFT JOIN (SELECT a.*, b.price, b.ts AS bts FROM auctions a JOIN bids b ON b.auction = a.id AND overlap(a.ts, 5,
    b.ts, 2)) a ON p.id = a.seller AND greatest(p.ts, a.ts, bts) < least(p.ts + INTERVAL 9 SECOND, a.ts +
    INTERVAL 5 SECOND, bts + INTERVAL 2 SECOND);

-- semi
SELECT a.id, a.seller
FROM auctions [RANGE 3 SECONDS] a
LEFT SEMI JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id;
SELECT a.id, a.seller
FROM auctions a
WHERE EXISTS (FROM bids b WHERE b.auction = a.id AND overlap(a.ts, 3, b.ts, 2));

-- anti
SELECT a.id, a.seller
FROM auctions [RANGE 3 SECONDS] a
LEFT ANTI JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id;
SELECT a.id, a.seller
FROM auctions a
WHERE NOT EXISTS (FROM bids b WHERE b.auction = a.id AND overlap(a.ts, 3, b.ts, 2));

-- anti rows
SELECT a.id
FROM auctions [RANGE 3 SECONDS] a
JOIN persons [RANGE 3 SECONDS] p ON p.id = a.seller
LEFT ANTI JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id AND b.bidder = p.id
LEFT JOIN views [RANGE 2 SECONDS] v ON v.who = p.id;
SELECT a.id
FROM (SELECT a.id, p.id AS pid, a.ts AS ats, p.ts AS pts FROM auctions a JOIN persons p ON p.id = a.seller AND
    overlap(a.ts, 3, p.ts, 3) WHERE NOT EXISTS (FROM bids b WHERE b.auction = a.id AND b.bidder = p.id AND
    overlap(a.ts, 3, p.ts, 3, b.ts, 2))) a
LEFT JOIN views v ON v.who = a.pid AND greatest(ats, pts, v.ts) < least(ats + INTERVAL 3 SECOND, pts + INTERVAL
    3 SECOND, v.ts + INTERVAL 2 SECOND);

-- struct left
SELECT a.id, p.address.city
FROM auctions [RANGE 2 SECONDS] a
LEFT JOIN persons [RANGE 1 SECONDS] p ON a.category = p.address.zip;
SELECT a.id, p.address.city
FROM auctions a
LEFT JOIN persons p ON a.category = p.address.zip AND overlap(a.ts, 2, p.ts, 1);

-- semi then inner
SELECT a.id, v.who
FROM auctions [RANGE 4 SECONDS] a
LEFT SEMI JOIN bids [RANGE 1 SECONDS] b ON b.auction = a.id
JOIN views [RANGE 2 SECONDS] v ON v.auction = a.id;
SELECT a.id, v.who
FROM auctions a
JOIN views v ON v.auction = a.id AND overlap(a.ts, 4, v.ts, 2)
WHERE EXISTS (FROM bids b WHERE b.auction = a.id AND overlap(a.ts, 4, b.ts, 1));

-- comma with left in brackets
SELECT p.name, a.id, b.price
FROM persons [RANGE 4 SECONDS] p, (auctions [RANGE 3 SECONDS] a LEFT JOIN bids [RANGE 1 SECONDS] b ON b.auction
    = a.id)
WHERE p.id = a.seller;
SELECT p.name, a.id, a.price
FROM (SELECT a.*, b.price, greatest(a.ts, b.ts) st, least(a.ts + INTERVAL 3 SECOND, b.ts + INTERVAL 1 SECOND) en
    FROM auctions a LEFT JOIN bids b ON b.auction = a.id AND overlap(a.ts, 3, b.ts, 1)) a
JOIN persons p ON p.id = a.seller AND greatest(p.ts, st) < least(p.ts + INTERVAL 4 SECOND, en);

-- right inner semi
SELECT a.id, b.price, p.name
FROM bids [RANGE 2 SECONDS] b
RIGHT JOIN auctions [RANGE 3 SECONDS] a ON b.auction = a.id
JOIN persons [RANGE 9 SECONDS] p ON p.id = a.seller
LEFT SEMI JOIN views [RANGE 9 SECONDS] v ON v.auction = a.id;
SELECT a.id, b.price, p.name
FROM bids b
RIGHT JOIN auctions a ON b.auction = a.id AND overlap(b.ts, 2, a.ts, 3)
JOIN persons p ON p.id = a.seller AND overlap(a.ts, 3, b.ts, 2, p.ts, 9)
WHERE EXISTS (FROM views v WHERE v.auction = a.id AND overlap(a.ts, 3, b.ts, 2, p.ts, 9, v.ts, 9));

-- expr keys null safe left
SELECT a.id, p.name
FROM auctions [RANGE 1 SECONDS] a
LEFT JOIN persons [RANGE 2 SECONDS] p ON a.seller <=> p.id AND a.category + 1 = p.address.zip + 1;
SELECT a.id, p.name
FROM auctions a
LEFT JOIN persons p ON a.seller IS NOT DISTINCT FROM p.id AND a.category + 1 = p.address.zip + 1 AND
    overlap(a.ts, 1, p.ts, 2);

-- left preserved cond
SELECT a.id, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 1 SECONDS] b ON b.auction = a.id AND a.reserve > 30;
SELECT a.id, b.price
FROM auctions a
LEFT JOIN bids b ON b.auction = a.id AND a.reserve > 30 AND overlap(a.ts, 3, b.ts, 1);

-- full where
SELECT p.id, a.id AS aid
FROM persons [RANGE 2 SECONDS] p
FULL JOIN auctions [RANGE 3 SECONDS] a ON p.id = a.seller
WHERE COALESCE(a.reserve, 0) < 20 OR p.name = 'n1';
SELECT p.id, a.id
FROM persons p
FULL JOIN auctions a ON p.id = a.seller AND overlap(p.ts, 2, a.ts, 3)
WHERE coalesce(a.reserve, 0) < 20 OR p.name = 'n1';

-- theta anti
SELECT a.id FROM auctions [RANGE 1 SECONDS] a LEFT ANTI JOIN bids [RANGE 1 SECONDS] b ON b.price > a.reserve;
SELECT a.id
FROM auctions a
WHERE NOT EXISTS (FROM bids b WHERE b.price > a.reserve AND overlap(a.ts, 1, b.ts, 1));

-- band left
SELECT a.id, b.price
FROM auctions [RANGE 3 SECONDS] a
LEFT JOIN bids [RANGE 2 SECONDS] b ON b.price BETWEEN a.reserve - 5 AND a.reserve + 5;
SELECT a.id, b.price
FROM auctions a
LEFT JOIN bids b ON b.price BETWEEN a.reserve - 5 AND a.reserve + 5 AND overlap(a.ts, 3, b.ts, 2);

-- 4 way mixed
SELECT p.name, a.id, b.price, v.who
FROM persons [RANGE 9 SECONDS] p
JOIN auctions [RANGE 6 SECONDS] a ON p.id = a.seller
FULL JOIN bids [RANGE 2 SECONDS] b ON b.auction = a.id
LEFT JOIN views [RANGE 3 SECONDS] v ON v.auction = COALESCE(a.id, b.auction) AND v.who = COALESCE(b.bidder,
    p.id);
SELECT j.name, j.id, b.price, v.who
FROM (SELECT p.name, p.id pid, a.id, greatest(p.ts, a.ts) st, least(p.ts + INTERVAL 9 SECOND, a.ts + INTERVAL 6
    SECOND) en FROM persons p JOIN auctions a ON p.id = a.seller AND overlap(p.ts, 9, a.ts, 6)) j
FULL JOIN bids b ON b.auction = j.id AND greatest(st, b.ts) < least(en, b.ts + INTERVAL 2 SECOND)
LEFT JOIN views v ON v.auction = coalesce(j.id, b.auction) AND v.who = coalesce(b.bidder, j.pid) AND
    greatest(st, b.ts, v.ts) < least(en, b.ts + INTERVAL 2 SECOND, v.ts + INTERVAL 3 SECOND);

-- select star outer
SELECT * FROM auctions [RANGE 2 SECONDS] a LEFT JOIN views [RANGE 1 SECOND] v ON v.auction = a.id;
SELECT * FROM auctions a LEFT JOIN views v ON v.auction = a.id AND overlap(a.ts, 2, v.ts, 1);
